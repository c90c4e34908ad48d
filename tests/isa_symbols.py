#!/usr/bin/env python3
"""isa_symbols.py BUILD_FOLDER: an object of src/device/cpu/isa/ exports its kernel table alone.

A weak symbol compiled with one ISA's flags may be the copy that the linker keeps for everybody, and
then stops every machine without that ISA. The object of the build is checked and, as inlining hides
such symbols, another one compiled with -O0.
"""

import concurrent.futures
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

FOLDER = "src/device/cpu/isa/"
WANTED_SYMBOLS = 1


def exported(nm, object_file):
    """The names of the symbols that an object defines for others, weak ones included. DW.ref.* are
    no code: the compiler's pointers to the routines of exception handling."""
    command = [nm, "--extern-only", "--defined-only", "--demangle", str(object_file)]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    names = [line.split(maxsplit=2)[2] for line in listing.splitlines() if line.strip()]
    return [name for name in names if not name.startswith("DW.ref.")]


def compile_arguments(entry, source, object_file, more):
    """The command of a compile_commands.json entry, for another source and output file."""
    arguments = entry.get("arguments") or shlex.split(entry["command"])
    kept, skip = [], False
    for argument in arguments:
        if skip or argument in ("-c", "-o", entry["file"]):
            skip = argument == "-o" and not skip
            continue
        kept.append(argument)
    return kept + more + ["-c", str(source), "-o", str(object_file)]


def symbol_finding(object_file, label, nm="nm"):
    """None, or what is wrong with an object."""
    symbols = exported(nm, object_file)
    if len(symbols) == WANTED_SYMBOLS:
        return None
    what = "".join(f"\n    {symbol}" for symbol in symbols[:20])
    return f"{label} exports {len(symbols)} symbols, not {WANTED_SYMBOLS}:{what}"


def built_object(entry):
    """The object that the build made of an entry."""
    arguments = entry.get("arguments") or shlex.split(entry["command"])
    return pathlib.Path(entry["directory"]) / arguments[arguments.index("-o") + 1]


def violation(entry, source, more, nm="nm"):
    """None, or what is wrong with the object that `entry` with more flags makes of `source`."""
    with tempfile.TemporaryDirectory() as folder:
        object_file = pathlib.Path(folder) / "isa.o"
        command = compile_arguments(entry, source, object_file, more)
        result = subprocess.run(command, cwd=entry["directory"], capture_output=True, text=True,
                                check=False)
        if result.returncode != 0:
            return f"{source} does not compile: {result.stderr.strip()[-2000:]}"
        return symbol_finding(object_file, f"{source} with {' '.join(more) or 'no more flags'}", nm)


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    commands = pathlib.Path(arguments[0]) / "compile_commands.json"
    entries = [entry for entry in json.loads(commands.read_text(encoding="utf-8"))
               if FOLDER in entry["file"]]
    # -Wno-error: a warning that comes only without optimization is no matter of this check. Rolled
    # loops have the same functions in fewer copies.
    more = ["-O0", "-Wno-error", "-DSTRATA_ROLLED_LOOPS"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda entry: violation(entry, entry["file"], more), entries))
    found += [symbol_finding(built_object(entry), entry["file"]) for entry in entries]
    messages = list(filter(None, found))
    print("\n".join(messages))
    print(f"isa_symbols: {len(entries)} files, {len(messages)} findings")
    return 1 if messages or not entries else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
