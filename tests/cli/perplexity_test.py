#!/usr/bin/env python3
"""strata perplexity, end to end: the score against the logits themselves, saving and comparing."""

import json
import math
import pathlib
import tempfile
import unittest

from support import INSTRUCT, ROOT, main, needs, strata, strata_in_shell

TEXT = ROOT / "ARCHITECTURE.md"
CHUNK = 64


@needs(INSTRUCT)
class Perplexity(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.saved = pathlib.Path(folder.name, "saved")

    def ask(self, *options, text=TEXT):
        return strata("perplexity", INSTRUCT, text, "--context", CHUNK, "--json", *options)

    def answer(self, *options):
        done = self.ask(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_score_follows_from_the_logits(self):
        got = self.answer("--chunks", 2)
        done = strata("tokenize", INSTRUCT, "--no-special", "--json", stdin=TEXT.read_bytes())
        tokens = json.loads(done.stdout)["tokens"]
        losses = []
        for start in (0, CHUNK):
            chunk = tokens[start:start + CHUNK]
            done = strata("logits", INSTRUCT, "--tokens", " ".join(map(str, chunk)),
                          "--positions", ",".join(map(str, range(CHUNK // 2, CHUNK - 1))))
            for position, row in json.loads(done.stdout)["logits"].items():
                top = max(row)
                total = top + math.log(sum(math.exp(x - top) for x in row))
                losses.append(total - row[chunk[int(position) + 1]])
        mean = sum(losses) / len(losses)
        spread = math.sqrt((sum(x * x for x in losses) / len(losses) - mean * mean)
                           / (len(losses) - 1))
        self.assertEqual(got["tokens"], len(losses))
        self.assertAlmostEqual(got["mean_loss"], mean, places=6)
        self.assertAlmostEqual(got["perplexity"], math.exp(mean), places=3)
        self.assertAlmostEqual(got["error"], math.exp(mean) * spread, places=3)

    def test_a_model_does_not_diverge_from_itself_but_from_its_reference(self):
        self.answer("--chunks", 2, "--save-logits", self.saved)
        same = self.answer("--chunks", 2, "--against", self.saved)
        self.assertEqual(same["kl_divergence"]["largest"], 0)
        self.assertEqual(same["top_1_agreement"], 1)
        self.assertEqual(same["base_perplexity"], same["perplexity"])
        other = self.answer("--chunks", 2, "--against", self.saved, "--reference")
        self.assertGreater(other["kl_divergence"]["mean"], 0)
        self.assertLess(other["kl_divergence"]["mean"], 0.05)
        self.assertLessEqual(other["kl_divergence"]["median"],
                             other["kl_divergence"]["percentile_99"])

    def test_other_tokens_and_damaged_files_are_refused(self):
        self.answer("--chunks", 1, "--save-logits", self.saved)
        self.assertIn(b"is there already", self.ask("--save-logits", self.saved).stderr)
        for change, word in [(lambda: None, b"other tokens"),
                             (lambda: self.saved.write_bytes(self.saved.read_bytes()[:-4]),
                              b"bytes"),
                             (lambda: self.saved.write_bytes(b"x" * 4096), b"no saved logits"),
                             (lambda: self.saved.write_bytes(b""), b"no saved logits")]:
            change()
            done = self.ask("--chunks", 2, "--against", self.saved)
            self.assertEqual(done.returncode, 1)
            self.assertIn(word, done.stderr)

    def test_a_text_shorter_than_a_chunk_is_refused(self):
        self.saved.write_text("Too short.")
        done = self.ask(text=self.saved)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"one chunk takes 64", done.stderr)

    def test_a_text_without_an_end_is_refused(self):
        done = self.ask(text="/dev/zero")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"/dev/zero has more than 256", done.stderr)

    def test_a_closed_standard_input_is_said_to_be_unreadable(self):
        done = strata_in_shell("<&-", "perplexity", INSTRUCT, "/dev/stdin")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot read /dev/stdin: ", done.stderr)

    def test_a_text_that_is_not_utf8_gets_a_note_with_the_line(self):
        self.saved.write_bytes(b"Salt.\n" * 200 + b"\xc3\n" * 50)
        done = self.ask("--chunks", 1, text=self.saved)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"line 201: not UTF-8", done.stderr)
        self.assertNotIn(b"UTF-8", self.ask("--chunks", 1).stderr)


if __name__ == "__main__":
    main()
