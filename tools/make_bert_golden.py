#!/usr/bin/env python3
"""Writes tests/data/bert.gguf and nomic-bert.gguf, tiny encoders of random weights with a WordPiece
vocabulary, and beside each a JSON file with the tokens and embeddings of some sentences; and
reranker.gguf with a head that scores pairs of texts, and a JSON file with the scores of some.

Usage: make_bert_golden.py [OUTPUT_FOLDER]     (needs the PyPI packages gguf and numpy)

Everything is computed here, in double precision, from Devlin et al., "BERT" (2019), and Nussbaum et
al., "Nomic Embed" (2024), and knows nothing of Strata: WordPiece, the encoder, and the pooled but
not normalised embeddings. A score is w tanh(W h + b) + c of the first token's hidden state h. The
seed is fixed, so a second run writes the same files.
"""

import json
import math
import string
import unicodedata

import gguf
import numpy as np

from logit_golden import output_folder, write_tensors

WIDTH, HEADS, LAYERS, INNER, CONTEXT = 32, 4, 2, 64, 320
EPSILON, ROPE_BASE = 1e-12, 1000.0
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ("the sea is salty why river carry salt into cat sat on mat and water au lait rain "
         "mountain stone old house").split()
PIECES = ["ing", "ed", "er", "ty", "fe"]
SENTENCES = ["", "Why is the sea salty?", "rivers carry salt into the sea",
             "An OLD cat  sat on the mat.", "Caf\u00e9 au lait, s'il vous pla\u00eet!",
             "salt \u5869 \u2603", " ".join(["salt and water"] * 95)]

PAIRS = [("Why is the sea salty?", "rivers carry salt into the sea"),
         ("Why is the sea salty?", "An OLD cat  sat on the mat."), ("water", ""),
         ("old house", " ".join(["salt and water"] * 90))]


def vocabulary():
    letters = list(string.ascii_lowercase)
    starts = letters + list("?.,!'") + WORDS
    return SPECIAL, starts, letters + PIECES


def is_alone(c):
    return not c.isalnum() or 0x4E00 <= ord(c) <= 0x9FFF


def words(text):
    """Lower-case words without accents; punctuation and ideographs stand alone."""
    text = "".join(c for c in unicodedata.normalize("NFD", text.lower())
                   if unicodedata.category(c) != "Mn")
    for c in set(text):
        if not c.isspace() and is_alone(c):
            text = text.replace(c, f" {c} ")
    return text.split()


def tokenize(text):
    special, starts, continuations = vocabulary()
    first, then = ({piece: base + i for i, piece in enumerate(pieces)} for base, pieces in
                   ((len(special), starts), (len(special) + len(starts), continuations)))
    ids = [special.index("[CLS]")]
    for word in words(text):
        found, at = [], 0
        while at < len(word):
            table = then if at else first
            end = next((e for e in range(len(word), at, -1) if word[at:e] in table), None)
            if end is None:
                found = [special.index("[UNK]")]
                break
            found.append(table[word[at:end]])
            at = end
        ids += found
    return ids + [special.index("[SEP]")]


def make_weights(random, nomic, segments=2):
    """Tensors by their names in the file, rounded to half precision where the file has that."""
    weights = {}
    size = sum(map(len, vocabulary()))

    def matrix(name, rows, columns, gain=1.0, kind=np.float16):
        values = random.normal(0, gain / np.sqrt(columns), (rows, columns))
        weights[name + ".weight"] = values.astype(kind)

    def vector(name, low, high, width=WIDTH):
        weights[name] = random.uniform(low, high, width).astype(np.float32)

    def linear(name, rows, columns, gain=1.0):
        matrix(name, rows, columns, gain)
        if not nomic:
            vector(name + ".bias", -0.3, 0.3, rows)

    def norm(name):
        vector(name + ".weight", 0.5, 1.5)
        vector(name + ".bias", -0.3, 0.3)

    matrix("token_embd", size, WIDTH, 4.0)
    matrix("token_types", segments, WIDTH, 2.0, np.float32)
    if not nomic:
        matrix("position_embd", CONTEXT, WIDTH, 2.0)
    norm("token_embd_norm")
    for layer in range(LAYERS):
        b = f"blk.{layer}."
        if nomic:
            linear(b + "attn_qkv", 3 * WIDTH, WIDTH, 1.5)
            linear(b + "ffn_gate", INNER, WIDTH)
        else:
            for part in ("q", "k", "v"):
                linear(b + "attn_" + part, WIDTH, WIDTH, 1.5)
        linear(b + "attn_output", WIDTH, WIDTH)
        norm(b + "attn_output_norm")
        linear(b + "ffn_up", INNER, WIDTH, 2.0)
        linear(b + "ffn_down", WIDTH, INNER)
        norm(b + "layer_output_norm")
    return weights


def add_head(random, weights):
    for name, rows in (("cls", WIDTH), ("cls.output", 1)):
        values = random.normal(0, 2 / np.sqrt(WIDTH), (rows, WIDTH))
        weights[name + ".weight"] = values.astype(np.float16)
        weights[name + ".bias"] = random.uniform(-0.3, 0.3, rows).astype(np.float32)


def write_model(path, weights, nomic, pooling=gguf.PoolingType.MEAN):
    special, starts, continuations = vocabulary()
    writer = gguf.GGUFWriter(path, "nomic-bert" if nomic else "bert")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_eps(EPSILON)
    writer.add_causal_attention(False)
    if nomic:
        writer.add_rope_freq_base(ROPE_BASE)
    else:
        writer.add_pooling_type(pooling)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(special + ["\u2581" + word for word in starts] + continuations)
    writer.add_token_types([3] * len(special) + [1] * (len(starts) + len(continuations)))
    writer.add_token_type_count(len(weights["token_types.weight"]))
    for role, name in (("padding", "[PAD]"), ("unknown", "[UNK]"), ("cls", "[CLS]"),
                       ("seperator", "[SEP]"), ("mask", "[MASK]")):  # spelled so in GGUF
        writer.add_uint32(f"tokenizer.ggml.{role}_token_id", special.index(name))
    write_tensors(writer, weights)


class Encoder:
    """The hidden states of a whole text at once: one row per token."""

    def __init__(self, weights, nomic=False, heads=HEADS):
        self.w = {name: values.astype(np.float64) for name, values in weights.items()}
        self.nomic = nomic
        self.heads = heads
        self.width = self.w["token_embd.weight"].shape[1]
        self.layers = sum(name.endswith("layer_output_norm.weight") for name in weights)

    def linear(self, name, x):
        return x @ self.w[name + ".weight"].T + self.w.get(name + ".bias", 0)

    def norm(self, name, x):
        centred = x - x.mean(axis=1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
        return scaled * self.w[name + ".weight"] + self.w[name + ".bias"]

    def rotate(self, x):
        """Element i of a head and element i + half turn together, with the position."""
        half = x.shape[-1] // 2
        angles = np.outer(np.arange(len(x)), ROPE_BASE ** (-np.arange(half) / half))[:, None, :]
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles),
                               a * np.sin(angles) + b * np.cos(angles)], axis=-1)

    def attention(self, b, x):
        if self.nomic:
            parts = np.split(self.linear(b + "attn_qkv", x), 3, axis=1)
        else:
            parts = [self.linear(b + "attn_" + part, x) for part in ("q", "k", "v")]
        q, k, v = (part.reshape(len(x), self.heads, -1) for part in parts)
        if self.nomic:
            q, k = self.rotate(q), self.rotate(k)
        scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(self.width // self.heads)
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        return self.linear(b + "attn_output",
                           np.einsum("hij,jhd->ihd", shares, v).reshape(len(x), self.width))

    def feed_forward(self, b, x):
        up = self.linear(b + "ffn_up", x)
        if self.nomic:
            gate = self.linear(b + "ffn_gate", x)
            return self.linear(b + "ffn_down", gate / (1 + np.exp(-gate)) * up)
        gelu = up * (1 + np.vectorize(math.erf)(up / math.sqrt(2))) / 2
        return self.linear(b + "ffn_down", gelu)

    def run(self, tokens):
        x = self.w["token_embd.weight"][tokens] + self.w["token_types.weight"][0]
        if not self.nomic:
            x = x + self.w["position_embd.weight"][:len(tokens)]
        x = self.norm("token_embd_norm", x)
        for layer in range(self.layers):
            b = f"blk.{layer}."
            x = self.norm(b + "attn_output_norm", x + self.attention(b, x))
            x = self.norm(b + "layer_output_norm", x + self.feed_forward(b, x))
        return x


def write_golden(folder, name, seed):
    nomic = name == "nomic-bert"
    weights = make_weights(np.random.default_rng(seed), nomic)
    write_model(folder / f"{name}.gguf", weights, nomic)
    encoder = Encoder(weights, nomic)
    sentences = []
    for text in SENTENCES:
        tokens = tokenize(text)
        rows = encoder.run(tokens)
        digits = {kind: [float(f"{x:.8g}") for x in row]
                  for kind, row in (("mean", rows.mean(axis=0)), ("cls", rows[0]),
                                    ("last", rows[-1]))}
        sentences.append({"text": text, "tokens": tokens, **digits})
    (folder / f"{name}.json").write_text(json.dumps({"arch": name, "sentences": sentences}) + "\n")


def write_reranker(folder, seed):
    random = np.random.default_rng(seed)
    weights = make_weights(random, False, segments=1)
    add_head(random, weights)
    write_model(folder / "reranker.gguf", weights, False, gguf.PoolingType.RANK)
    encoder = Encoder(weights)
    pairs = []
    for query, document in PAIRS:
        tokens = tokenize(query) + tokenize(document)[1:]
        first = np.tanh(encoder.linear("cls", encoder.run(tokens)[:1]))
        score = float(f"{encoder.linear('cls.output', first).item():.8g}")
        pairs.append({"query": query, "document": document, "tokens": tokens, "score": score})
    (folder / "reranker.json").write_text(json.dumps({"arch": "bert", "pairs": pairs}) + "\n")


def main():
    folder = output_folder()
    write_golden(folder, "bert", 11)
    write_golden(folder, "nomic-bert", 12)
    write_reranker(folder, 13)


if __name__ == "__main__":
    main()
