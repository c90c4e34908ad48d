#!/usr/bin/env python3
"""strata bench, end to end: what it reports, never how fast; and peers, good and bad."""

import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
import unittest.mock

from support import PATIENCE, PROGRAM, REFERENCE, in_control_group, main, needs, strata

MODEL = REFERENCE / "llama.gguf"
FAKE = pathlib.Path(__file__).with_name("fake_peer.py")
FEW = ("-r", 2, "--threads", 1)
TINY = ("-p", 12, "-n", 3)


@needs(MODEL)
class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def answer(self, *options, model=MODEL):
        done = strata("bench", model, *FEW, "--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def refused(self, word, *options):
        done = strata("bench", MODEL, *FEW, *options)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(word, done.stderr.decode())
        self.assertEqual(done.stdout, b"")

    def misused(self, word, *options):
        done = strata("bench", MODEL, *options)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(word, done.stderr.decode())

    def note(self, *options):
        done = strata("bench", MODEL, *FEW, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr.decode()

    def test_every_test_is_reported_with_all_its_repetitions(self):
        got = self.answer(*TINY, "--depth", "0,40", "--batch", "1,20", "--batch-depth", 8,
                          "--step-rows", 32)
        self.assertEqual([row["test"] for row in got["rows"]],
                         ["pp12", "tg3", "tg3 @ 40", "tg3 @ 8 x 1", "tg3 @ 8 x 20"])
        for row in got["rows"]:
            speed = row["tokens_per_second"]
            self.assertEqual(len(speed["values"]), 2)
            self.assertTrue(0 < speed["lowest"] <= speed["median"] <= speed["highest"])
            self.assertGreater(row["operations_per_second"], 0)
            self.assertNotIn("ratio", row)
        self.assertEqual(len(got["load_seconds"]["values"]), 2)
        if "cold_load_seconds" in got:  # not in a file system that is memory
            self.assertEqual(len(got["cold_load_seconds"]["values"]), 2)
        self.assertGreater(got["peak_resident_bytes"], 1 << 20)
        self.assertEqual(got["model"]["architecture"], "llama")
        self.assertEqual(got["model"]["file"], "llama.gguf")
        self.assertGreater(got["model"]["parameters"], 0)
        self.assertEqual(got["machine"]["threads"], 1)
        self.assertGreater(got["machine"]["memory_bytes"], 1 << 28)
        self.assertRegex(got["strata"]["commit"], "^[0-9a-f]+(-dirty)?$|^unknown$")

    def test_bytes_are_counted_as_the_model_has_them(self):
        for row in self.answer("-p", 0, "-n", 4)["rows"]:
            step = row["bytes_per_second"] / row["tokens_per_second"]["median"]
            self.assertLess(step, 1.2 * MODEL.stat().st_size)
            self.assertGreater(step, 0.2 * MODEL.stat().st_size)

    @needs(REFERENCE / "qwen3moe.gguf")
    def test_mixtures_of_experts_and_states_are_counted_too(self):
        for name in ("qwen3moe", "gemma3", "mamba2"):
            got = self.answer(*TINY, "--batch", 2, model=REFERENCE / f"{name}.gguf")
            self.assertEqual(len(got["rows"]), 3, name)

    def test_tables_and_csv_say_the_same_and_replace_no_file(self):
        done = strata("bench", MODEL, *FEW, *TINY)
        for word in ("tokens/s", "pp12", "tg3", "load", "peak memory"):
            self.assertIn(word, done.stdout.decode())
        path = self.folder / "out.csv"
        self.assertEqual(strata("bench", MODEL, *FEW, *TINY, "--csv", "-o", path).returncode, 0)
        rows = list(csv.DictReader(io.StringIO(path.read_text())))
        self.assertEqual([row["test"] for row in rows], ["pp12", "tg3"])
        self.assertGreater(float(rows[0]["median"]), 0)
        self.assertEqual(rows[0]["ratio"], "")
        self.assertIn("read_percent", rows[0])
        self.refused("is there already", *TINY, "--csv", "-o", path)
        self.refused("is a folder", *TINY, "-o", self.folder)
        self.refused("there is no folder", *TINY, "-o", self.folder / "nowhere" / "out")
        path.unlink()
        link = self.folder / "link"
        link.symlink_to(path)
        self.refused(f"is a link to {path}, which is not there", *TINY, "-o", link)
        os.mkfifo(path)
        self.refused("is a pipe", *TINY, "-o", path)
        self.misused("for a format say --json", "-o", "json")

    def test_limits_of_this_machine_turn_speeds_into_shares(self):
        with unittest.mock.patch.dict(os.environ, STRATA_CACHE=str(self.folder)):
            self.assertIsNone(self.answer(*TINY)["limits"])
            self.assertIn("note: strata profile, once, or --limits would", self.note(*TINY))
            self.assertEqual(strata("profile").returncode, 0)
            (cache,) = self.folder.glob("limits-*.json")
            cache.write_text("damaged")
            self.assertIn(f"note: {cache}: it is no JSON object (strata profile measures anew); "
                          "speeds are given without", self.note(*TINY))
            self.assertIsNone(self.answer(*TINY)["limits"])
            self.assertEqual(cache.read_text(), "damaged")
            self.assertEqual(strata("profile").returncode, 0)
            limits = self.answer(*TINY)["limits"]
            self.assertEqual(json.loads(cache.read_text())["version"], 1)
            self.assertEqual(limits["threads"], 1)
            self.assertGreater(limits["read_bandwidth"], 1e8)
            self.assertGreater(limits["int8_ops"], 1e8)
            self.assertIn(b" %", strata("bench", MODEL, *FEW, *TINY).stdout)
            done = strata("bench", MODEL, *FEW, *TINY, "--csv")
            self.assertGreater(float(done.stdout.decode().split(",")[-1]), 0)
            self.check_stale_limits(cache)

    def check_stale_limits(self, cache):
        measured = json.loads(cache.read_text())
        other = "avx2" if measured["isa"] == "scalar" else "scalar"
        if other == "scalar":
            self.assertIn(f"measured with {measured['isa']} kernels: no share",
                          self.note(*TINY, "--isa", other))
        most = measured["by_threads"][-1]["threads"]
        done = strata("bench", MODEL, *TINY, "-r", 1, "--threads", most + 1, "--json")
        self.assertIn(f"measured with up to {most} thread", done.stderr.decode())
        self.assertIsNone(json.loads(done.stdout)["limits"])
        for entry in measured["by_threads"]:
            entry["int8_ops"] = 1e8
        cache.write_text(json.dumps(measured))
        self.assertIn("% of a limit: the limits look stale", self.note(*TINY))

    def test_limits_are_measured_in_turn_where_asked(self):
        got = self.answer("-p", 0, "-n", 3, "--isa", "scalar", "--limits")
        self.assertIsNone(got["limits"])
        for row in got["rows"]:
            self.assertGreater(row["limits"]["read_bandwidth"], 1e8)
            self.assertGreater(row["limits"]["int8_ops"], 1e8)

    def test_options_that_leave_nothing_to_measure_are_refused(self):
        self.refused("nothing is asked for", "-p", 0, "-n", 0)
        self.refused("--step-rows", *TINY, "--batch", 32, "--step-rows", 32)
        self.assertEqual(strata("bench", MODEL, "--context", 64).returncode, 2)

    def test_more_tokens_than_the_model_was_made_for_get_a_note(self):
        context = json.loads(strata("show", MODEL, "--json").stdout)["context_length"]
        word = f"note: the model was made for {context} tokens"
        self.assertIn(word, self.note("-p", context + 1, "-n", 0))
        self.assertNotIn(word, self.note("-p", 8, "-n", 0))

    def test_lists_that_are_none_are_refused(self):
        for text in "12,-1", "", "8,", ",8", "8,,9", "x", "16777217":
            self.misused(f"--prompt: '{text}' is no list of numbers from 0", "-p", text)
        self.misused("--generate: 1 is given twice", "-n", "1,2,1")
        self.misused("--depth: 8 is given twice", "-d", 8, "-d", "8")
        self.misused("--prompt: 0 means none", "-p", "8,0")
        self.misused("--batch: '0' is no list of numbers from 1", "--batch", 0)
        self.misused("--seed: '-1' is no fitting number", "--seed", -1)

    def test_a_control_group_limits_the_threads(self):
        if os.cpu_count() < 2 or not in_control_group(100000):
            self.skipTest("one processor, or no namespaces here")
        waiting = "warning: 2 threads where the control group allows "
        for quota, options, threads, word in [
                (100000, [], 1, "note: 1 thread: the control group allows 1 of"),
                (50000, [], 1, "note: 1 thread: the control group allows 0.5 of"),
                (150000, [], 2, "note: 2 threads: the control group allows 1.5 of"),
                (100000, ["-t", "2"], 2, waiting + "1 of"),
                (50000, ["-t", "2"], 2, waiting + "0.5 of"),
                (150000, ["-t", "2"], 2, "")]:
            done = subprocess.run([*in_control_group(quota), PROGRAM, "bench", MODEL, "-r", "1",
                                   "-p", "8", "-n", "0", "--json", *options],
                                  capture_output=True, check=True, timeout=PATIENCE)
            self.assertEqual(json.loads(done.stdout)["machine"]["threads"], threads)
            self.assertIn(word, done.stderr.decode())
            self.assertEqual("warning" in done.stderr.decode(), "warning" in word)

    def test_peers_take_turns_on_the_same_tests(self):
        log = self.folder / "log"
        got = self.answer(*TINY, "--depth", "0,8", "--batch", 2, "--batch-depth", 4,
                          "--peer", FAKE, "--peer-args", f"--log {log} -ub 7",
                          "--peer-batched", FAKE, "--peer-batched-args", f"--log {log} -b 9")
        self.assertEqual([row["peer_tokens_per_second"]["values"] for row in got["rows"]],
                         [[100.5, 100.5]] * 3 + [[50, 50]])
        for row in got["rows"]:
            ratio = row["tokens_per_second"]["median"] / row["peer_tokens_per_second"]["median"]
            self.assertAlmostEqual(row["ratio"] / ratio, 1, places=4)
        calls = [json.loads(line) for line in log.read_text().splitlines()]
        common = ["-m", str(MODEL), "-t", "1", "-b", "256"]
        mine = common + ["--log", str(log), "-ub", "7", "-r", "1", "-o", "json"]
        self.assertEqual(calls[0::2], calls[1::2])
        self.assertEqual(calls[0], mine + ["-p", "12", "-n", "0"])
        self.assertEqual(calls[2], mine + ["-p", "0", "-n", "3"])
        self.assertEqual(calls[4], mine + ["-p", "0", "-n", "3", "-d", "8"])
        self.assertEqual(calls[6], common[:4] + ["-ub", "256", "-c", "512", "--log", str(log),
                                                 "-b", "9", "-npp", "4", "-ntg", "3", "-npl", "2",
                                                 "--output-format", "jsonl"])

    def test_peers_without_depth_or_json_are_understood(self):
        old = self.folder / "old.py"
        shutil.copy(FAKE, old)
        got = self.answer(*TINY, "--depth", 8, "--batch", 2, "--peer", old, "--peer-batched", old)
        self.assertEqual([row["peer_tokens_per_second"]["median"] for row in got["rows"]],
                         [100.5, 100.5, 40.25])
        self.assertIn("100.5", strata("bench", MODEL, *FEW, *TINY, "--peer", old).stdout.decode())

    def test_tables_on_standard_error_are_read_too(self):
        loud = self.folder / "loud.py"
        shutil.copy(FAKE, loud)
        got = self.answer(*TINY, "--batch", 2, "--peer-batched", loud,
                          "--peer-batched-args", "-c 64")
        self.assertEqual(got["rows"][-1]["peer_tokens_per_second"]["median"], 40.25)

    def test_options_of_a_peer_that_is_not_named_are_refused(self):
        for options in (["--peer-args", "x"], ["--peer-batched-args", "x"],
                        ["--peer-batched", FAKE]):
            self.assertEqual(strata("bench", MODEL, *FEW, *TINY, *options).returncode, 2, options)
        self.refused("name it with --peer", *TINY, "--peer-name", "x")
        self.refused("name it with --peer", *TINY, "--peer-limit", 9)

    def test_the_cache_counts_as_it_is_kept(self):
        steps = []
        for cache in "q8_0", "f16", "f32":
            got = self.answer("-p", 0, "-n", 2, "--depth", 250, "--cache", cache)
            self.assertEqual(got["settings"]["cache"], cache)
            row = got["rows"][0]
            steps.append(row["bytes_per_second"] / row["tokens_per_second"]["median"])
        self.assertAlmostEqual((steps[2] - steps[1]) / (steps[1] - steps[0]), 32 / 15, places=1)

    def test_bad_peers_end_in_an_error_that_names_them(self):
        for fake, word in [("fail", "exit code 3; it said: cannot load the model"),
                           ("garbage", r"no result of this test: [{\x1b[31m"),
                           ("other", "`n_gen` is 1 where 0 was asked for"),
                           ("absurd", "avg_ts is '1E300'"),
                           ("dead", "avg_ts is '1E-300'")]:
            self.refused(word, *TINY, "--peer", FAKE, "--peer-args", f"--fake {fake}")
        silent = self.folder / "silent.py"
        shutil.copy(FAKE, silent)
        for fake in FAKE, silent:
            self.refused("took longer than 1 s", *TINY, "--peer", fake, "--peer-args",
                         "--fake hang", "--peer-limit", 1)
        self.refused("no result", *TINY, "--batch", 2, "--peer-batched", FAKE,
                     "--peer-batched-args", "--fake garbage")
        self.refused("cannot start", *TINY, "--peer", self.folder / "nothing")
        self.refused("cannot start", *TINY, "--batch", 2, "--peer-batched", MODEL)


if __name__ == "__main__":
    main()
