#!/usr/bin/env python3
"""Who may include whom: the table of ARCHITECTURE.md, over the includes of every C++ file."""

import pathlib
import posixpath
import re
import sys

from source_text import CppSource
from tidy import ROOT, repository_files

# A folder of src/ and what it may include besides itself: whole folders or single headers. A folder
# within a folder that stands here is a layer of its own.
LAYERS = {
    "base": [],
    "formats": ["base"],
    "graph": ["base"],
    "schedule": ["base"],
    "gguf": ["base"],
    "sample": ["base"],
    "grammar": ["sample/constraint.h", "base"],
    "hub": ["gguf", "base"],
    "text": ["gguf", "base"],
    "models": ["graph", "gguf", "base"],
    "placement": ["graph", "gguf", "base"],
    "device": ["graph", "formats", "base"],
    "weights": ["device/device.h", "placement/plan.h", "gguf", "base"],
    "probe": ["device", "weights/read_queue.h", "placement/hardware_profile.h", "base"],
    "execute": ["weights", "device/device.h", "placement/plan.h", "graph",
                "schedule/step_plan.h", "base"],
    "speculate": ["execute", "schedule/sequence.h", "base"],
    "engine": ["speculate", "execute", "probe", "weights", "device", "placement", "models", "text",
               "sample", "gguf", "schedule", "graph", "formats", "base"],
    "serve": ["engine/engine.h", "grammar", "text", "sample", "gguf", "base"],
    "serve/http": ["base"],
    "quantize": ["execute", "formats", "models", "gguf", "base"],
}

# Folders outside src/: programs, which may include anything of src/.
PROGRAMS = ["apps", "bench", "fuzz", "tests", "tools"]

# Headers that are not C++'s own, and where they may be included.
EXTERNAL = [
    (r"fmt/.*|spdlog/.*", ["src/", "apps/", "bench/", "fuzz/", "tests/"]),
    (r"boost/json.*|boost/json/.*", ["src/text/", "src/hub/", "src/grammar/", "src/serve/",
                                       "apps/", "fuzz/", "tests/"]),
    (r"boost/beast/.*", ["src/serve/http/request_parser.cc"]),
    (r"boost/asio/.*|boost/asio\.hpp", ["src/serve/http/"]),
    (r"pcre2\.h", ["src/text/tokenizer/"]),
    (r"CLI/.*", ["apps/", "tools/"]),
    (r"histedit\.h|editline/.*", ["apps/"]),
    (r"gtest/.*|gmock/.*", ["tests/", "*_test.cc", "*/test_support.h"]),
    (r"benchmark/.*", ["bench/", "*_bench.cc", "*/bench_support.h"]),
    (r"curl/.*|zip\.h", ["src/hub/"]),
    (r"liburing\.h", ["src/weights/"]),
    (r"toml\+\+/.*", ["apps/"]),
    (r"openssl/.*|xxhash\.h|zstd\.h", ["src/", "apps/"]),
    (r"immintrin\.h|cpuid\.h|arm_neon\.h|sys/auxv\.h|asm/hwcap\.h", ["src/device/",
                                                                     "src/base/platform.h"]),
    (r"cuda.*|nccl\.h|mlx/.*", ["src/device/"]),
]
STANDARD = re.compile(r"[a-z_0-9]+|(?:sys|netinet|arpa|linux|bits)/[a-z_0-9]+\.h|[a-z_0-9]+\.h")

INCLUDE = re.compile(r'#include\s*(?:"([^"]+)"|<([^>]+)>)')


def includes_of(text):
    """(line, quoted path or None, bracketed path or None) of every include."""
    for line, directive in CppSource(text).directives():
        if match := INCLUDE.match(directive):
            yield line, match.group(1), match.group(2)


def resolve(path, quoted, files):
    """The repository's path of a quoted include: seen from src/, the root, or beside the file."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), quoted))
    for candidate in ("src/" + quoted, quoted, beside):
        if candidate in files:
            return candidate
    return None


def is_test(path):
    return path.endswith("_test.cc") or path.endswith("/test_support.h")


def allows(path, target):
    """Whether the file `path` may include the file `target`."""
    parts, wanted = path.split("/"), target.split("/")
    if parts[0] in PROGRAMS:
        return wanted[0] in ("src", parts[0], "tests")
    if wanted[0] == "tests":
        return is_test(path)
    if wanted[0] != "src" or parts[1] not in LAYERS:
        return False
    inside, layer = "/".join(wanted[1:]), "/".join(parts[1:3])
    if layer not in LAYERS:
        layer = parts[1]
    allowed = LAYERS[layer]
    return inside.startswith(layer + "/") or wanted[1] in allowed or inside in allowed


def allows_external(path, header):
    for pattern, places in EXTERNAL:
        if re.fullmatch(pattern, header):
            return any(
                path.endswith(place[1:]) if place[0] == "*" else path.startswith(place)
                for place in places)
    return STANDARD.fullmatch(header) is not None


def find_cycle(edges):
    """One cycle of a graph {node: nodes} as a list that ends where it starts, or None."""
    done = set()
    for root in sorted(edges):
        path, on_path, stack = [], set(), [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                path.pop()
                on_path.discard(node)
                done.add(node)
            elif node in on_path:
                return path[path.index(node):] + [node]
            elif node not in done:
                path.append(node)
                on_path.add(node)
                stack.append((node, True))
                stack.extend((next_node, False) for next_node in sorted(edges.get(node, ())))
    return None


def check(files):
    """Checks {path: text}; paths are relative to the repository."""
    messages, edges = [], {}
    for path, text in files.items():
        parts = path.split("/")
        if parts[0] not in PROGRAMS and not (parts[0] == "src" and parts[1] in LAYERS):
            messages.append(f"{path}:1: a folder that the table of layers does not know")
            continue
        for line, quoted, bracketed in includes_of(text):
            if bracketed is not None:
                if not allows_external(path, bracketed):
                    messages.append(f"{path}:{line}: <{bracketed}> has no place here")
                continue
            target = resolve(path, quoted, files)
            if target is None:
                messages.append(f'{path}:{line}: "{quoted}" is no file of the repository')
            elif not allows(path, target):
                messages.append(f'{path}:{line}: "{quoted}" is not for this folder to include')
            else:
                edges.setdefault(path, set()).add(target)
    if cycle := find_cycle(edges):
        messages.append("includes in a circle: " + " -> ".join(cycle))
    return messages


def cycle_of_layers():
    """The table itself has no cycle either; a single header counts as its folder."""
    return find_cycle({
        layer: {entry.split("/")[0] for entry in allowed} for layer, allowed in LAYERS.items()})


def main():
    files = {}
    for path in repository_files(ROOT):
        if path.endswith((".cc", ".h", ".cu", ".cuh")) and (ROOT / path).is_file():
            files[path] = (ROOT / path).read_text(encoding="utf-8")
    messages = check(files)
    if cycle := cycle_of_layers():
        messages.append("the table of layers has a circle: " + " -> ".join(cycle))
    print("\n".join(messages))
    print(f"layers: {len(files)} files, {len(messages)} findings")
    return 1 if messages or not files else 0


if __name__ == "__main__":
    sys.exit(main())
