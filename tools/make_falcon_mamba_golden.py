#!/usr/bin/env python3
"""Writes tests/data/falcon-mamba.gguf, a tiny Falcon-Mamba model of random weights, and
falcon-mamba.json, its logits.

Usage: make_falcon_mamba_golden.py [OUTPUT_FOLDER]     (needs the PyPI packages gguf and numpy)

The logits are computed here in double precision, one token at a time, from the equations of Gu and
Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", with the RMS norms without
weights that Zuo et al., "Falcon Mamba", put on the low-rank time step, B and C. They know nothing
of Strata. The seed is fixed, so a second run writes the same files.
"""

import sys

import gguf
import numpy as np

from logit_golden import write_golden, write_tensors

ARCHITECTURE = "mamba"
WIDTH, INNER, STATE, RANK, KERNEL, LAYERS, VOCABULARY = 32, 64, 8, 32, 4, 2, 512
EPSILON, SELECTION_EPSILON = 1e-5, 1e-6
PROMPTS, GREEDY = (5, 40), 12


def make_weights(random):
    """Tensors by their names in the file, rounded to half precision where the file has that."""
    weights = {}

    def matrix(name, rows, columns, gain=1.0):
        values = random.normal(0, gain / np.sqrt(columns), (rows, columns))
        weights[name + ".weight"] = values.astype(np.float16)

    def table(name, low, high, shape):
        weights[name] = random.uniform(low, high, shape).astype(np.float32)

    matrix("token_embd", VOCABULARY, WIDTH, gain=4.0)
    for layer in range(LAYERS):
        b = f"blk.{layer}."
        table(b + "attn_norm.weight", 0.5, 1.5, WIDTH)
        matrix(b + "ssm_in", 2 * INNER, WIDTH)
        table(b + "ssm_conv1d.weight", -0.7, 0.7, (INNER, KERNEL))
        table(b + "ssm_conv1d.bias", -0.2, 0.2, INNER)
        # Small enough that the epsilon of its norms counts.
        matrix(b + "ssm_x", RANK + 2 * STATE, INNER, gain=0.02)
        matrix(b + "ssm_dt", INNER, RANK)
        table(b + "ssm_dt.bias", -2, 1, INNER)
        table(b + "ssm_a", -3, -0.1, (INNER, STATE))
        table(b + "ssm_d", -1, 1, INNER)
        matrix(b + "ssm_out", WIDTH, INNER)
    table("output_norm.weight", 0.5, 1.5, WIDTH)
    matrix("output", VOCABULARY, WIDTH, gain=2.0)
    return weights


def write_model(path, weights):
    writer = gguf.GGUFWriter(path, ARCHITECTURE)
    writer.add_block_count(LAYERS)
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_ssm_conv_kernel(KERNEL)
    writer.add_ssm_inner_size(INNER)
    writer.add_ssm_state_size(STATE)
    writer.add_ssm_time_step_rank(RANK)
    writer.add_ssm_dt_b_c_rms(True)
    write_tensors(writer, weights)


def silu(x):
    return x / (1 + np.exp(-x))


def rms(x, epsilon):
    return x / np.sqrt((x**2).mean() + epsilon)


class Model:
    """One sequence: step() takes a token and gives the logits behind it."""

    def __init__(self, weights, norms=True):
        self.w = {name: values.astype(np.float64) for name, values in weights.items()}
        self.norms = norms
        self.layers = sum(name.endswith(".ssm_a") for name in weights)
        inner, kernel = self.w["blk.0.ssm_conv1d.weight"].shape
        state = self.w["blk.0.ssm_a"].shape[1]
        self.states = [np.zeros((inner, state)) for _ in range(self.layers)]
        self.pasts = [np.zeros((inner, kernel)) for _ in range(self.layers)]

    def mix(self, layer, x):
        def at(name):
            return self.w[f"blk.{layer}.ssm_{name}"]

        x, gate = np.split(at("in.weight") @ x, 2)
        past, state = self.pasts[layer], self.states[layer]
        past[:] = np.column_stack([past[:, 1:], x])
        x = silu((past * at("conv1d.weight")).sum(axis=1) + at("conv1d.bias"))
        rank = at("dt.weight").shape[1]
        selected = np.split(at("x.weight") @ x, [rank, rank + state.shape[1]])
        low_rank, b, c = (rms(part, SELECTION_EPSILON) if self.norms else part
                          for part in selected)
        dt = np.log1p(np.exp(at("dt.weight") @ low_rank + at("dt.bias")))
        state[:] = np.exp(dt[:, None] * at("a")) * state + np.outer(dt * x, b)
        return at("out.weight") @ ((state @ c + at("d") * x) * silu(gate))

    def step(self, token):
        x = self.w["token_embd.weight"][token].copy()
        for layer in range(self.layers):
            x += self.mix(layer, rms(x, EPSILON) * self.w[f"blk.{layer}.attn_norm.weight"])
        head = self.w.get("output.weight", self.w["token_embd.weight"])
        return head @ (rms(x, EPSILON) * self.w["output_norm.weight"])


if __name__ == "__main__":
    write_golden("falcon-mamba", 11, sys.modules[__name__], PROMPTS, GREEDY)
