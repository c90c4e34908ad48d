#!/usr/bin/env python3
"""Writes the goldens of src/formats: what the PyPI package `gguf` makes of the same bytes.

Usage: make_format_goldens.py [OUTPUT_FOLDER]     (needs the PyPI packages gguf and numpy)

decode.bin  per format: u32 type, block bytes, block elements, blocks; the blocks; their f32 values
encode.bin  u32 groups, u32 inputs of a group; the f32 inputs; then per format: u32 type, and per
            group the f64 mean squared error of gguf's quantizer on it
All numbers are little-endian. The seed is fixed, so a second run writes the same files.
"""

import pathlib
import struct
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

DECODED = [Type.F32, Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0,
           Type.Q4_K, Type.Q5_K, Type.Q6_K, Type.Q2_K, Type.Q3_K, Type.IQ1_S, Type.IQ1_M,
           Type.IQ2_XXS, Type.IQ2_XS, Type.IQ2_S, Type.IQ3_XXS, Type.IQ3_S, Type.IQ4_NL,
           Type.IQ4_XS, Type.TQ1_0, Type.TQ2_0, Type.MXFP4, Type.NVFP4]
ENCODED = [Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1, Type.Q8_0, Type.TQ1_0,
           Type.TQ2_0, Type.MXFP4]

# Where a block keeps its f16 factors, in bytes.
FACTORS = {Type.Q4_0: [0], Type.Q5_0: [0], Type.Q8_0: [0], Type.Q4_1: [0, 2], Type.Q5_1: [0, 2],
           Type.Q4_K: [0, 2], Type.Q5_K: [0, 2], Type.Q6_K: [208], Type.Q2_K: [80, 82],
           Type.Q3_K: [108], Type.IQ1_S: [0], Type.IQ2_XXS: [0], Type.IQ2_XS: [0], Type.IQ2_S: [0],
           Type.IQ3_XXS: [0], Type.IQ3_S: [0], Type.IQ4_NL: [0], Type.IQ4_XS: [0],
           Type.TQ1_0: [52], Type.TQ2_0: [64]}

# Zeros, the least and the largest subnormal, the least normal, one, the largest, infinity, NaN.
HALVES = [0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF, 0x7C00, 0x7E00]


def blocks_of(kind, random):
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    if elements == 1:
        plain = random.integers(0, 256, (64, size), dtype=np.uint8)
        if size == 2:
            plain[: len(HALVES)] = np.array(HALVES, dtype="<u2").view(np.uint8).reshape(-1, 2)
        return plain
    # Random codes behind every factor, then codes of all zeros and all ones, then all random.
    blocks = random.integers(0, 256, (len(HALVES) + 6, size), dtype=np.uint8)
    blocks[len(HALVES)] = 0
    blocks[len(HALVES) + 1] = 255
    if kind == Type.IQ1_M:
        for i, half in enumerate(HALVES + [0x3C00, 0x3C00]):
            spread_factor(blocks[i], half)
    for at, offset in enumerate(FACTORS.get(kind, [])):
        for i, half in enumerate(np.roll(HALVES, at)):
            blocks[i, offset : offset + 2] = np.array([half], dtype="<u2").view(np.uint8)
        one = np.array([0x3C00], dtype="<u2").view(np.uint8)
        blocks[len(HALVES) : len(HALVES) + 2, offset : offset + 2] = one
    return blocks


def spread_factor(block, half):
    """IQ1_M keeps its factor in the top four bits of four words."""
    for i in range(4):
        block[49 + 2 * i] = (block[49 + 2 * i] & 0xF) | ((half >> (4 * i)) & 0xF) << 4


def write_decode(path, random):
    with open(path, "wb") as out:
        for kind in DECODED:
            elements, size = gguf.GGML_QUANT_SIZES[kind]
            blocks = blocks_of(kind, random)
            with np.errstate(invalid="ignore", over="ignore"):
                values = gguf.quants.dequantize(blocks.reshape(1, -1), kind)
            assert values.size == blocks.shape[0] * elements
            out.write(struct.pack("<4I", kind.value, size, elements, blocks.shape[0]))
            out.write(blocks.tobytes())
            out.write(values.astype("<f4").tobytes())


def inputs(random):
    shape = (16, 32)
    groups = [
        random.standard_normal(shape) * 0.02,
        random.standard_t(2, shape) * 0.5,
        random.uniform(3, 5, shape),
        random.standard_normal(shape) * 1e-3,
        random.standard_normal(shape) * 300,
        np.repeat(random.standard_normal((16, 1)), 32, axis=1),
    ]
    return np.stack(groups).reshape(len(groups), -1).astype(np.float32)


def write_encode(path, random):
    x = inputs(random)
    with open(path, "wb") as out:
        out.write(struct.pack("<2I", *x.shape))
        out.write(x.astype("<f4").tobytes())
        for kind in ENCODED:
            packed = gguf.quants.quantize(x, kind)
            back = gguf.quants.dequantize(packed, kind).reshape(x.shape)
            errors = np.mean((back.astype(np.float64) - x) ** 2, axis=1)
            out.write(struct.pack(f"<I{len(errors)}d", kind.value, *errors))


def main():
    here = pathlib.Path(__file__).resolve().parent
    folder = here.parent / "src" / "formats" / "testdata"
    if len(sys.argv) > 1:
        folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write_decode(folder / "decode.bin", np.random.default_rng(1))
    write_encode(folder / "encode.bin", np.random.default_rng(2))


if __name__ == "__main__":
    main()
