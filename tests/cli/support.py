"""What the end-to-end tests share: the program, the models, and a terminal to talk through."""

import json
import os
import pathlib
import pty
import select
import signal
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REFERENCE = ROOT.parent / "shared" / "data" / "reference"
CACHE = pathlib.Path(os.environ.get("STRATA_CACHE") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "strata") / "models"
INSTRUCT = CACHE / "SmolLM2-135M-Instruct.Q4_1.gguf"
BASE = CACHE / "gemma-3-270m-q4_k_m.gguf"
PROGRAM = os.environ.get("STRATA_PROGRAM", "")
PATIENCE = 240  # seconds until a test counts as hanging; a sanitized build is slow


def needs(path):
    """Skips a test where the model is not on this machine."""
    return unittest.skipUnless(path.exists(), f"{path.name} is not there: not tested")


def strata(*arguments, stdin=b"", stdout=subprocess.PIPE, **more):
    if isinstance(stdin, str):
        stdin = stdin.encode()
    return subprocess.run([PROGRAM, *map(str, arguments)], input=stdin, stdout=stdout,
                          stderr=subprocess.PIPE, timeout=PATIENCE, check=False, **more)


def strata_in_shell(redirection, *arguments):
    """The program with its input or output as a shell redirects it."""
    return subprocess.run(["sh", "-c", f'exec "$@" {redirection}', "sh", PROGRAM,
                           *map(str, arguments)],
                          capture_output=True, timeout=PATIENCE, check=False)


def in_control_group(quota):
    """Words before a command that let it see a group of so many microseconds in 100,000, which
    slows nothing; empty where the system has no namespaces for users."""
    script = ('mount -t tmpfs none /sys/fs/cgroup && '
              f'echo "{quota} 100000" > /sys/fs/cgroup/cpu.max && exec "$@"')
    words = ["unshare", "-rm", "sh", "-c", script, "sh"]
    there = subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0
    return words if there else []


def reference(name):
    """The path of a reference model and its golden logits."""
    golden = json.loads((REFERENCE / f"{name}.json").read_text())
    return REFERENCE / f"{name}.gguf", golden["prompts"]


class Terminal:
    """The program at a terminal of its own."""

    def __init__(self, *arguments):
        self.screen = ""
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm", LC_ALL="C.UTF-8")
            os.execv(PROGRAM, [PROGRAM, *map(str, arguments)])

    def type(self, text):
        os.write(self.descriptor, text.encode())

    def read(self, seconds):
        """Takes what comes within that time; False at the end of the output."""
        if not select.select([self.descriptor], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.descriptor, 1 << 16)
        except OSError:  # the other side is closed
            return False
        self.screen += data.decode(errors="replace")
        return bool(data)

    def wait_for(self, text):
        """Reads until the screen shows `text`, and returns what came before; forgets both."""
        limit = time.monotonic() + PATIENCE
        while text not in self.screen:
            if time.monotonic() > limit or not self.read(0.2):
                raise AssertionError(f"no {text!r} in {self.screen!r}")
        before, self.screen = self.screen.split(text, 1)
        return before

    def wait_for_anything(self):
        while not self.screen.strip():
            if not self.read(PATIENCE):
                raise AssertionError("no output")

    def close(self):
        """Waits for the program to end and returns its exit code."""
        limit = time.monotonic() + PATIENCE
        while self.read(0.2):
            if time.monotonic() > limit:
                os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.descriptor)
        return os.waitstatus_to_exitcode(status)


def main():
    if not PROGRAM:
        sys.exit("STRATA_PROGRAM must name the program to test")
    unittest.main(verbosity=2)
