#!/usr/bin/env python3
"""strata-synthetic, end to end: what it refuses, and what it leaves behind when it is ended."""

import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from support import PATIENCE, PROGRAM, main

SYNTHETIC = pathlib.Path(PROGRAM).parent / "strata-synthetic"
TINY = ("--dim", "64", "--layers", "1", "--heads", "2", "--kv-heads", "1", "--ff", "64",
        "--vocab", "512", "--format", "q8_0")


class Synthetic(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "model.gguf")

    def refused(self, word, *options):
        done = subprocess.run([SYNTHETIC, *options], capture_output=True, text=True, check=False,
                              timeout=PATIENCE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(word, done.stderr)
        self.assertEqual(list(self.path.parent.iterdir()), [])

    def test_mistakes_name_their_option(self):
        self.refused("error: --context: 0 is not in 1..", *TINY, "--context", "0", self.path)
        self.refused("error: --dim: 72 elements are no whole Q8_0 blocks", "--dim", "72",
                     "--format", "q8_0", self.path)
        self.refused("error: the name of the file to write is empty", *TINY, "")

    def test_what_the_disk_cannot_hold_is_refused_at_once(self):
        self.refused("too little for a file of", "--layers", "1", "--vocab", "512", "--format",
                     "f32", "--dim", "16777216", "--ff", "16777216", self.path)

    def test_a_signal_ends_it_without_a_trace(self):
        for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            words = [SYNTHETIC, "--preset", "8b", "--vocab", "512", self.path]
            with subprocess.Popen(words) as child:
                limit = time.monotonic() + PATIENCE
                while not any(self.path.parent.iterdir()) and time.monotonic() < limit:
                    time.sleep(0.001)
                child.send_signal(number)
                self.assertEqual(child.wait(PATIENCE), -number)
            self.assertEqual(list(self.path.parent.iterdir()), [])

    def test_a_whole_file_is_put_in_place(self):
        self.assertEqual(subprocess.run([SYNTHETIC, *TINY, self.path], check=False).returncode, 0)
        self.assertEqual(list(self.path.parent.iterdir()), [self.path])


if __name__ == "__main__":
    main()
