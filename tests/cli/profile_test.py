#!/usr/bin/env python3
"""strata profile, end to end: what it prints and what it leaves in the cache."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from support import PATIENCE, PROGRAM, in_control_group, main, strata


class Profile(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name, "cache")

    def profile(self, *options):
        done = strata("profile", *options, env={**os.environ, "STRATA_CACHE": str(self.cache)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def saved(self):
        (path,) = self.cache.iterdir()
        return json.loads(path.read_text())

    def test_json_is_what_the_cache_keeps(self):
        got = json.loads(self.profile("--json"))
        self.assertEqual(got, self.saved())
        threads = [entry["threads"] for entry in got["by_threads"]]
        self.assertEqual(threads[0], 1)
        self.assertEqual(threads, sorted(set(threads)))
        for entry in got["by_threads"]:
            for rate in ("read_bandwidth", "int8_ops", "f32_ops"):
                self.assertGreater(entry[rate], 1e6)

    def test_one_team_is_measured_alone_and_not_saved(self):
        got = json.loads(self.profile("--json", "-t", "2", "--isa", "scalar"))
        self.assertEqual(got["isa"], "scalar")
        self.assertEqual([entry["threads"] for entry in got["by_threads"]], [2])
        self.assertFalse(self.cache.exists())

    def test_the_table_has_a_line_for_every_number_of_threads(self):
        lines = self.profile().splitlines()
        saved = self.saved()
        self.assertIn(saved["cpu"], lines[0])
        self.assertEqual([int(line.split()[0]) for line in lines[2:]],
                         [entry["threads"] for entry in saved["by_threads"]])

    def test_a_control_group_keeps_limits_of_its_own(self):
        whole = json.loads(self.profile("--json"))
        kept = set(self.cache.iterdir())
        group = in_control_group(50000)
        if not group:
            self.skipTest("no namespaces here")
        subprocess.run([*group, PROGRAM, "profile"], capture_output=True, check=True,
                       timeout=PATIENCE, env={**os.environ, "STRATA_CACHE": str(self.cache)})
        (new,) = set(self.cache.iterdir()) - kept
        self.assertIn("limits-0.5-of-", new.name)
        self.assertEqual(json.loads(kept.pop().read_text()), whole)


if __name__ == "__main__":
    main()
