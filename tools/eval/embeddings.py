#!/usr/bin/env python3
"""Compares `strata embed` with an independent implementation on a sentence-transformers BERT model.

Usage: embeddings.py FOLDER --strata PROGRAM [--work FOLDER] [--half]

FOLDER holds config.json, vocab.txt, tokenizer.json and model.safetensors, e.g. of all-MiniLM-L6-v2.
It is converted to GGUF (matrices in half precision with --half) and asked for the embeddings of
sentences from prose.txt; the Hugging Face tokenizer and the encoder of make_bert_golden.py, in
double precision on the same weights, say what they should be.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys

import gguf
import numpy as np
import tokenizers

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from logit_golden import write_tensors  # noqa: E402
from make_bert_golden import Encoder  # noqa: E402

SENTENCES = 20
EXTRA = ["Caf\u00e9 au lait \u2014 s'il vous pla\u00eet!", "\u4f60\u597d, \u4e16\u754c", "",
         "COVID-19 & 5G: \u20ac3.50"]
LAYER = {"attention.self.query": "attn_q", "attention.self.key": "attn_k",
         "attention.self.value": "attn_v", "attention.output.dense": "attn_output",
         "attention.output.LayerNorm": "attn_output_norm", "intermediate.dense": "ffn_up",
         "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm"}
TOP = {"embeddings.word_embeddings": "token_embd", "embeddings.LayerNorm": "token_embd_norm",
       "embeddings.token_type_embeddings": "token_types",
       "embeddings.position_embeddings": "position_embd"}


def read_safetensors(path):
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    for name, info in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and info["dtype"] == "F32":
            first, last = info["data_offsets"]
            yield name, np.frombuffer(data[8 + size + first:8 + size + last],
                                      np.float32).reshape(info["shape"])


def to_gguf_name(name):
    name, kind = name.removeprefix("bert.").rsplit(".", 1)
    if name in TOP:
        return f"{TOP[name]}.{kind}"
    if name.startswith("encoder.layer."):
        layer, part = name.removeprefix("encoder.layer.").split(".", 1)
        return f"blk.{layer}.{LAYER[part]}.{kind}"
    return None  # the pooler, which sentence embeddings do not use


def read_weights(folder, half):
    weights = {}
    for name, values in read_safetensors(folder / "model.safetensors"):
        if (short := to_gguf_name(name)) is not None:
            is_matrix = values.ndim == 2 and short != "token_types.weight"
            weights[short] = values.astype(np.float16) if half and is_matrix else values
    return weights


def write_gguf(path, folder, config, weights):
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    vocabulary = (folder / "vocab.txt").read_text().splitlines()
    special = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}
    writer.add_tokenizer_model("bert")
    writer.add_token_list([word if word in special else word[2:] if word.startswith("##")
                           else "\u2581" + word for word in vocabulary])
    writer.add_token_types([3 if word in special else 1 for word in vocabulary])
    writer.add_token_type_count(config["type_vocab_size"])
    for role, word in (("cls", "[CLS]"), ("seperator", "[SEP]"), ("unknown", "[UNK]")):
        writer.add_uint32(f"tokenizer.ggml.{role}_token_id", vocabulary.index(word))
    write_tensors(writer, weights)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--strata", required=True)
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--half", action="store_true")
    options = parser.parse_args()
    config = json.loads((options.folder / "config.json").read_text())
    weights = read_weights(options.folder, options.half)
    model = options.work / f"{options.folder.name}-{'f16' if options.half else 'f32'}.gguf"
    write_gguf(model, options.folder, config, weights)

    prose = " ".join((HERE / "prose.txt").read_text().split())
    texts = [s.strip() + "." for s in prose.split(". ")][:SENTENCES - len(EXTRA)] + EXTRA
    tokenizer = tokenizers.Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokens = [tokenizer.encode(text).ids for text in texts]
    encoder = Encoder(weights, heads=config["num_attention_heads"])
    expected = unit(np.array([encoder.run(ids).mean(axis=0) for ids in tokens]))
    for mode in ([], ["--reference"]):
        done = subprocess.run([options.strata, "embed", model, "--json", *mode], check=True,
                              input="\n".join(texts + [""]).encode(), stdout=subprocess.PIPE)
        answer = json.loads(done.stdout)
        assert answer["tokens"] == [len(ids) for ids in tokens], (answer["tokens"], tokens)
        got = np.array(answer["embeddings"])
        print(f"{model.name} {' '.join(mode) or 'as run'}: {len(texts)} texts, largest difference "
              f"{np.abs(got - expected).max():.2e}, smallest cosine "
              f"{(unit(got) * expected).sum(axis=1).min():.8f}")


if __name__ == "__main__":
    main()
