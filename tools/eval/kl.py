"""Compares llama.cpp and Strata with a float32 reference on real text; README.md says how."""

import argparse
import hashlib
import pathlib
import subprocess
import sys
import time

import numpy as np

import divergence
import llama_peer
import reference
import windows

PEER = "llama.cpp"
FAST_RATIO = 1.1  # Strata's mean KL over llama.cpp's
REFERENCE_KL = 1e-5


def work_folder(root, model):
    """One folder for each (model, reference, texts), so that nothing stale is ever read."""
    digest = hashlib.sha256()
    texts = [path for path, _ in windows.SOURCES]
    for path in [model, reference.__file__, windows.__file__, *texts]:
        with open(path, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    folder = root / f"{model.stem}-{digest.hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def reference_logits(model, folder, texts):
    """Memory-mapped float32 [tokens, vocabulary] for each window, computed where absent."""
    paths = [folder / f"{number}.reference.npy" for number in range(len(texts))]
    if not all(path.exists() for path in paths):
        weights = reference.Model(model)
        for path, text in zip(paths, texts):
            partial = path.with_suffix(".partial")
            rows = np.lib.format.open_memmap(partial, "w+", np.float32,
                                             (len(text["tokens"]), weights.vocabulary))
            weights.logits_into(text["tokens"], rows)
            rows.flush()
            partial.rename(path)
    return [np.load(path, mmap_mode="r") for path in paths]


def peer_parts(model, folder, texts, golden):
    """Divergence of llama.cpp for each window; kept, since its logits are not."""
    saved = folder / f"{PEER}-{llama_peer.version()}.npz"
    if not saved.exists():
        rows = llama_peer.logits(model, texts)
        parts = [divergence.compare(p, q) for p, q in zip(golden, rows)]
        arrays = {f"kl{n}": part.kl for n, part in enumerate(parts)}
        arrays |= {f"top{n}": part.same_top for n, part in enumerate(parts)}
        np.savez(saved, **arrays)
    with np.load(saved) as arrays:
        return [divergence.Divergence(arrays[f"kl{n}"], arrays[f"top{n}"])
                for n in range(len(texts))]


def strata_parts(strata, model, folder, golden, options):
    """Runs `strata logits` on each window and compares what it writes."""
    output, parts = folder / "strata.f32", []
    for number, expected in enumerate(golden):
        subprocess.run([strata, "logits", model, "--tokens-file", folder / f"{number}.tokens",
                        "--positions", "all", "--output", output, *options], check=True)
        wanted = expected.size * 4
        if output.stat().st_size != wanted:
            raise ValueError(f"strata wrote {output.stat().st_size} bytes, expected {wanted}")
        rows = np.memmap(output, "<f4", "r", shape=expected.shape)
        parts.append(divergence.compare(expected, rows))
        output.unlink()
    return parts


def print_table(results, texts):
    baseline = divergence.join(results[PEER])
    print(f"\n{len(baseline.kl)} positions, KL(reference || engine) in nats")
    print(f"{'engine':22}{'mean':>10}{'median':>10}{'99%':>10}{'max':>10}{'top-1':>8}"
          f"  mean / {PEER} (90%)")
    for name, parts in results.items():
        whole = divergence.join(parts)
        median, high = np.quantile(whole.kl, [0.5, 0.99])
        ratio, low, upper = divergence.ratio_interval(whole.kl, baseline.kl)
        print(f"{name:22}{whole.kl.mean():10.2e}{median:10.2e}{high:10.2e}"
              f"{whole.kl.max():10.2e}{whole.same_top.mean():8.2%}"
              f"  {ratio:.3g} ({low:.3g} to {upper:.3g})")
    print(f"\n{'mean KL by window':22}" + "".join(f"{text['source']:>10}" for text in texts))
    for name, parts in results.items():
        print(f"{name:22}" + "".join(f"{part.kl.mean():10.2e}" for part in parts))


def verdicts(results):
    """Prints whether Strata keeps its two bounds; returns whether it does."""
    mean = {name: divergence.join(parts).kl.mean() for name, parts in results.items()}
    bounds = {"strata": FAST_RATIO * mean[PEER], "strata --reference": REFERENCE_KL}
    kept = True
    for name, bound in bounds.items():
        if name in mean:
            holds = mean[name] <= bound
            kept &= holds
            print(f"{name}: {mean[name]:.2e}, at most {bound:.2e}: "
                  f"{'holds' if holds else 'MISSED'}")
    return kept


def timed(label, step, *arguments):
    start = time.monotonic()
    value = step(*arguments)
    print(f"{label:22}{time.monotonic() - start:8.1f} s", flush=True)
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path, help="a GGUF file")
    parser.add_argument("--work", type=pathlib.Path, required=True,
                        help="folder for logits, up to 6 GiB for each model")
    parser.add_argument("--strata", type=pathlib.Path, help="the program; absent: llama.cpp only")
    arguments = parser.parse_args()
    model = arguments.model
    folder = work_folder(arguments.work, model)
    texts = timed("tokens", windows.load_or_make, model, folder)
    golden = timed("reference", reference_logits, model, folder, texts)
    results = {PEER: timed(PEER, peer_parts, model, folder, texts, golden)}
    if arguments.strata:
        for name, options in [("strata", []), ("strata --reference", ["--reference"])]:
            results[name] = timed(name, strata_parts, arguments.strata, model, folder, golden,
                                  options)
    print_table(results, texts)
    return 0 if verdicts(results) else 1


if __name__ == "__main__":
    sys.exit(main())
