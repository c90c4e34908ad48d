#!/usr/bin/env python3
"""client_packages.py: makes sure that the official clients of the protocols that the server speaks
are there for this Python, in a folder of their own; prints it.

It lies beside the models of the cache (see fetch_model.py) and is used by tests alone.
"""

import os
import subprocess
import sys

from fetch_model import cache_folder, locked

PACKAGES = ("openai==1.109.1", "ollama==0.6.0")


def client_folder(environment):
    return cache_folder(environment) / "clients-{}.{}".format(*sys.version_info)


def is_complete(folder):
    stamp = folder / "packages"
    return stamp.exists() and stamp.read_text(encoding="utf-8").split() == list(PACKAGES)


def install(folder):
    """Fails with the last line that pip says."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--upgrade",
               "--only-binary", ":all:", "--target", str(folder), *PACKAGES]
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        raise OSError((result.stderr.strip() or "pip failed").splitlines()[-1])
    (folder / "packages").write_text(" ".join(PACKAGES), encoding="utf-8")


def main():
    folder = client_folder(os.environ)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            if not is_complete(folder):
                print(f"Installing {', '.join(PACKAGES)} into {folder}", file=sys.stderr)
                install(folder)
    except OSError as error:
        print(f"client_packages.py: the clients of the protocols are not installed: {error}",
              file=sys.stderr)
        return 1
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
