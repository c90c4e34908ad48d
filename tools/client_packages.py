#!/usr/bin/env python3
"""client_packages.py: makes sure that the official clients of the protocols that the server speaks
are installed, in an environment of their own; prints the path of its Python.

It lies beside the models of the cache (see fetch_model.py) and is used by tests alone.
"""

import os
import pathlib
import subprocess
import sys
import venv

from fetch_model import cache_folder, locked

PACKAGES = ("openai==1.109.1", "ollama==0.6.0")


def python_of(folder):
    return folder / "bin" / "python"


def is_complete(folder):
    stamp = folder / "packages"
    return stamp.exists() and stamp.read_text(encoding="utf-8").split() == list(PACKAGES)


def install(folder):
    """Fails with the last line that pip says."""
    venv.create(folder, with_pip=True, clear=True)
    command = [str(python_of(folder)), "-m", "pip", "install", "--quiet", "--no-input",
               "--only-binary", ":all:", *PACKAGES]
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise RuntimeError((result.stderr.strip() or "pip failed").splitlines()[-1])
    (folder / "packages").write_text(" ".join(PACKAGES), encoding="utf-8")


def main():
    parent = cache_folder(os.environ)
    folder = parent / "clients"
    parent.mkdir(parents=True, exist_ok=True)
    try:
        with locked(parent):
            if not is_complete(folder):
                print(f"Installing {', '.join(PACKAGES)} into {folder}", file=sys.stderr)
                install(folder)
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        print(f"client_packages.py: the clients of the protocols are not installed: {error}",
              file=sys.stderr)
        return 1
    print(python_of(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
