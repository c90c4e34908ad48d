"""Checks reference.py against golden logits: golden.py NAME.gguf..., each with NAME.json beside it.

The JSON holds {"prompts": [{"tokens": [...], "logits": {"POSITION": [...]}}]}.
"""

import json
import pathlib
import sys

import numpy as np

import reference

TOLERANCE = 2e-3


def largest_difference(path):
    model = reference.Model(path)
    largest = 0.0
    for prompt in json.loads(path.with_suffix(".json").read_text())["prompts"]:
        logits = np.empty((len(prompt["tokens"]), model.vocabulary), np.float32)
        model.logits_into(prompt["tokens"], logits)
        for position, expected in prompt["logits"].items():
            difference = np.abs(logits[int(position)] - np.asarray(expected))
            largest = float(np.maximum(largest, difference.max()))  # keeps NaN
    return largest


def main(paths):
    failed = False
    for path in map(pathlib.Path, paths):
        difference = largest_difference(path)
        holds = difference < TOLERANCE
        failed |= not holds
        print(f"{path.stem:16} max |difference| {difference:.1e}  {'ok' if holds else 'FAILED'}")
    return 1 if failed or not paths else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
