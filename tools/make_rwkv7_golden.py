#!/usr/bin/env python3
"""Writes tests/data/rwkv7.gguf, a tiny RWKV-7 model of random weights, and rwkv7.json, its logits.

Usage: make_rwkv7_golden.py [OUTPUT_FOLDER]     (needs the PyPI packages gguf and numpy)

The logits are computed here in double precision, one token at a time, from the equations of Peng
et al., "RWKV-7 Goose with Expressive Dynamic State Evolution", and know nothing of Strata. The JSON
has the form of the reference data: prompts of tokens, logits by position, the greedy tokens then.
The seed is fixed, so a second run writes the same files.
"""

import sys

import gguf
import numpy as np

from logit_golden import write_golden, write_tensors

ARCHITECTURE = "rwkv7"
WIDTH, HEAD, LAYERS, INNER, VOCABULARY = 32, 16, 2, 64, 512
RANKS = {"w": 8, "a": 8, "v": 4, "g": 12}
EPSILON = 1e-5
PROMPTS, GREEDY = (5, 40), 12


def make_weights(random):
    """Tensors by their names in the file, rounded to half precision where the file has that."""
    weights = {}

    def matrix(name, rows, columns, gain=1.0):
        values = random.normal(0, gain / np.sqrt(columns), (rows, columns))
        weights[name + ".weight"] = values.astype(np.float16)

    def vector(name, low, high, shape=(WIDTH,)):
        weights[name] = random.uniform(low, high, shape).astype(np.float32)

    def norm(name):
        vector(name + ".weight", 0.5, 1.5)
        vector(name + ".bias", -0.2, 0.2)

    matrix("token_embd", VOCABULARY, WIDTH)
    norm("token_embd_norm")
    for layer in range(LAYERS):
        b = f"blk.{layer}."
        norm(b + "attn_norm")
        norm(b + "attn_norm_2")
        norm(b + "time_mix_ln")
        vector(b + "time_mix_lerp_fused.weight", 0, 1, (6, 1, 1, WIDTH))
        vector(b + "channel_mix_lerp_k.weight", 0, 1, (1, 1, WIDTH))
        for part in ("receptance", "key", "value", "output"):
            matrix(b + "time_mix_" + part, WIDTH, WIDTH)
        for part, rank in RANKS.items():
            matrix(b + f"time_mix_{part}1", rank, WIDTH)
            matrix(b + f"time_mix_{part}2", WIDTH, rank)
            if part != "g":
                vector(b + f"time_mix_{part}0.weight", -2, 2)
        vector(b + "time_mix_k_k.weight", 0.5, 1.5)
        vector(b + "time_mix_k_a.weight", 0.2, 1.2)
        vector(b + "time_mix_r_k.weight", -1, 1)
        matrix(b + "channel_mix_key", INNER, WIDTH)
        matrix(b + "channel_mix_value", WIDTH, INNER)
    norm("output_norm")
    matrix("output", VOCABULARY, WIDTH, gain=2.0)
    return weights


def write_model(path, weights):
    writer = gguf.GGUFWriter(path, ARCHITECTURE)
    writer.add_block_count(LAYERS)
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(0)
    writer.add_layer_norm_eps(EPSILON)
    writer.add_wkv_head_size(HEAD)
    writer.add_token_shift_count(2)
    writer.add_decay_lora_rank(RANKS["w"])
    writer.add_iclr_lora_rank(RANKS["a"])
    writer.add_value_residual_mix_lora_rank(RANKS["v"])
    writer.add_gate_lora_rank(RANKS["g"])
    write_tensors(writer, weights)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Model:
    """One sequence: step() takes a token and gives the logits behind it."""

    def __init__(self, weights):
        self.w = {name: values.astype(np.float64) for name, values in weights.items()}
        heads = WIDTH // HEAD
        self.states = [np.zeros((heads, HEAD, HEAD)) for _ in range(LAYERS)]
        self.shifts = [[np.zeros(WIDTH), np.zeros(WIDTH)] for _ in range(LAYERS)]

    def norm(self, x, name):
        centred = x - x.mean()
        scaled = centred / np.sqrt((centred**2).mean() + EPSILON)
        return scaled * self.w[name + ".weight"] + self.w[name + ".bias"]

    def time_mix(self, layer, x, first_value):
        def at(name):
            return self.w[f"blk.{layer}.time_mix_{name}.weight"]

        before, self.shifts[layer][0] = self.shifts[layer][0], x
        r_in, w_in, k_in, v_in, a_in, g_in = (
            x + (before - x) * mix for mix in at("lerp_fused").reshape(6, WIDTH))
        receptance = at("receptance") @ r_in
        decay = np.exp(-np.exp(-0.5) * sigmoid(at("w0") + at("w2") @ np.tanh(at("w1") @ w_in)))
        key, value = at("key") @ k_in, at("value") @ v_in
        if layer == 0:
            first_value = value
        else:
            share = sigmoid(at("v0") + at("v2") @ (at("v1") @ v_in))
            value = value + (first_value - value) * share
        rate = sigmoid(at("a0") + at("a2") @ (at("a1") @ a_in))
        gate = at("g2") @ sigmoid(at("g1") @ g_in)

        heads = (-1, HEAD)
        removed = (key * at("k_k")).reshape(heads)
        removed /= np.maximum(np.linalg.norm(removed, axis=1, keepdims=True), 1e-12)
        key = key * (1 + (rate - 1) * at("k_a"))
        r, k, v = receptance.reshape(heads), key.reshape(heads), value.reshape(heads)
        returned = removed * rate.reshape(heads)
        out = np.empty_like(r)
        for h, state in enumerate(self.states[layer]):
            transition = np.diag(decay.reshape(heads)[h]) - np.outer(removed[h], returned[h])
            state[:] = state @ transition + np.outer(v[h], k[h])
            out[h] = state @ r[h]

        centred = out - out.mean(axis=1, keepdims=True)
        normed = (centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 64e-5)).ravel()
        normed = normed * at("ln") + self.w[f"blk.{layer}.time_mix_ln.bias"]
        bonus = (r * k * at("r_k").reshape(heads)).sum(axis=1, keepdims=True) * v
        return at("output") @ ((normed + bonus.ravel()) * gate), first_value

    def channel_mix(self, layer, x):
        def at(name):
            return self.w[f"blk.{layer}.channel_mix_{name}.weight"]

        before, self.shifts[layer][1] = self.shifts[layer][1], x
        mixed = x + (before - x) * at("lerp_k").ravel()
        return at("value") @ np.maximum(at("key") @ mixed, 0) ** 2

    def step(self, token):
        x = self.norm(self.w["token_embd.weight"][token], "token_embd_norm")
        first_value = None
        for layer in range(LAYERS):
            mixed, first_value = self.time_mix(
                layer, self.norm(x, f"blk.{layer}.attn_norm"), first_value)
            x = x + mixed
            x = x + self.channel_mix(layer, self.norm(x, f"blk.{layer}.attn_norm_2"))
        return self.w["output.weight"] @ self.norm(x, "output_norm")


if __name__ == "__main__":
    write_golden("rwkv7", 7, sys.modules[__name__], PROMPTS, GREEDY)
