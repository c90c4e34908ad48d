"""Golden logits in the form of the reference data: prompts of tokens, logits by position, and the
greedy tokens then."""

import json
import pathlib
import sys

import numpy as np


def digits(x):
    return float(f"{x:.7g}")


def run_prompt(model, tokens, greedy_tokens):
    """`model.step(token)` gives the logits behind it."""
    rows = [model.step(token) for token in tokens]
    wanted = sorted({0, len(tokens) // 2, len(tokens) - 1})
    logits = {str(p): [digits(x) for x in rows[p]] for p in wanted}
    greedy, margins, last = [], [], rows[-1]
    for _ in range(greedy_tokens):
        order = np.argsort(last)
        greedy.append(int(order[-1]))
        margins.append(digits(last[order[-1]] - last[order[-2]]))
        last = model.step(greedy[-1])
    return {"tokens": tokens, "logits": logits, "greedy": greedy, "greedy_margin": margins}


def output_folder():
    """The first argument, or where the tests look."""
    root = pathlib.Path(__file__).resolve().parent.parent
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "tests" / "data"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def write_golden(name, seed, model, prompt_lengths, greedy_tokens):
    """Writes NAME.gguf and NAME.json. `model` is a module: its ARCHITECTURE, its
    make_weights(random) and write_model(path, weights), and Model(weights), one sequence."""
    folder = output_folder()
    random = np.random.default_rng(seed)
    weights = model.make_weights(random)
    model.write_model(folder / f"{name}.gguf", weights)
    vocabulary = len(weights["token_embd.weight"])
    prompts = [run_prompt(model.Model(weights), random.integers(0, vocabulary, length).tolist(),
                          greedy_tokens) for length in prompt_lengths]
    golden = {"arch": model.ARCHITECTURE, "gguf": f"{name}.gguf", "prompts": prompts}
    (folder / f"{name}.json").write_text(json.dumps(golden) + "\n")


def write_tensors(writer, weights):
    """Finishes a GGUF file whose keys are all added."""
    for name, values in weights.items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
