#!/usr/bin/env python3
"""strata logits, end to end: the goldens, the raw rows, and every kind of wrong request."""

import array
import json
import pathlib
import tempfile
import unittest

from support import REFERENCE, main, needs, reference, strata

TOLERANCE = 2e-3
MARGIN = 0.01


def float32(values):
    return array.array("f", values).tolist()


@needs(REFERENCE)
class Logits(unittest.TestCase):
    def ask(self, model, tokens, *options):
        done = strata("logits", model, "--tokens", " ".join(map(str, tokens)), *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_match_the_golden_logits(self):
        for name in ("llama", "qwen3", "gemma3"):
            model, prompts = reference(name)
            for prompt in prompts:
                with self.subTest(model=name, tokens=len(prompt["tokens"])):
                    positions = ",".join(prompt["logits"])
                    answer = self.ask(model, prompt["tokens"], "--positions", positions,
                                      "--greedy", len(prompt["greedy"]), "--reference")
                    for position, expected in prompt["logits"].items():
                        worst = max(abs(a - b) for a, b in
                                    zip(answer["logits"][position], expected, strict=True))
                        self.assertLess(worst, TOLERANCE)
                    self.check_greedy(prompt, answer["greedy"])

    def check_greedy(self, prompt, greedy):
        for got, wanted, margin in zip(greedy, prompt["greedy"], prompt["greedy_margin"],
                                       strict=True):
            if margin < MARGIN:
                break
            self.assertEqual(got, wanted)

    def test_floats_round_trip_through_json_and_lines_run_together(self):
        model, prompts = reference("llama")
        lines = [prompt["tokens"] for prompt in prompts]
        with tempfile.TemporaryDirectory() as folder:
            tokens, output = pathlib.Path(folder, "tokens"), pathlib.Path(folder, "rows")
            tokens.write_text("\n\n".join(" ".join(map(str, line)) for line in lines))
            done = strata("logits", model, "--tokens-file", tokens, "--positions", "0,4",
                          "--output", output, "--greedy", 5)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = array.array("f", output.read_bytes())
        greedy = [json.loads(line)["greedy"] for line in done.stdout.splitlines()]
        self.assertEqual(len(rows), len(lines) * 2 * 512)
        for index, line in enumerate(lines):
            alone = self.ask(model, line, "--positions", "4 0", "--greedy", 5, "--json")
            together = rows[index * 1024:(index + 1) * 1024].tolist()
            self.assertEqual(float32(alone["logits"]["0"] + alone["logits"]["4"]), together)
            self.assertEqual(alone["greedy"], greedy[index])

    def test_all_positions_and_every_isa_agree(self):
        model, prompts = reference("llama")
        tokens = prompts[0]["tokens"]
        best = self.ask(model, tokens, "--positions", "all")
        self.assertEqual(list(best["logits"]), [str(i) for i in range(len(tokens))])
        self.assertEqual(best["greedy"], [])
        scalar = self.ask(model, tokens, "--positions", "all", "--isa", "scalar", "--threads", 1)
        self.assertEqual(best, scalar)

    def test_wrong_requests_name_the_value_and_the_range(self):
        model, _ = reference("llama")
        for arguments, words in [
                (["--tokens", "1 512"], [b"512", b"vocabulary of 512"]),
                (["--tokens", "1 -3"], [b"-3", b"vocabulary"]),
                (["--tokens", "1 x"], [b"'x'"]),
                (["--tokens", "1 99999999999"], [b"99999999999", b"2147483647"]),
                (["--tokens", "1 2", "--positions", "0,2"], [b"2", b"0 to 1"]),
                (["--tokens", "1 2", "--positions", "-1"], [b"-1", b"0 to 1"]),
                (["--tokens", "1 2", "--positions", "zero"], [b"'zero'"]),
                (["--tokens", "1 2", "--positions", "all,0"], [b"either all or", b"'all,0'"]),
                (["--tokens", "1 2", "--positions", " all"], [b"either all or"]),
                (["--tokens", " "], [b"no tokens"]),
                (["--tokens-file", "nowhere"], [b"nowhere"]),
                (["--tokens-file", "/dev/zero"], [b"/dev/zero has more than 64.0 MiB"]),
                (["--tokens-file", "/"], [b"cannot read /: Is a directory"]),
                ([], [b"no tokens"])]:
            with self.subTest(arguments=arguments):
                done = strata("logits", model, "--greedy", 1, *arguments)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(done.stdout, b"")
                for word in words:
                    self.assertIn(word, done.stderr)

    def test_a_request_for_nothing_is_refused(self):
        model, _ = reference("llama")
        done = strata("logits", model, "--tokens", "1 2")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"nothing is asked for", done.stderr)

    def test_an_output_replaces_no_file(self):
        model, _ = reference("llama")
        with tempfile.TemporaryDirectory() as folder:
            kept = pathlib.Path(folder, "kept")
            kept.write_text("1 2")
            done = strata("logits", model, "--tokens-file", kept, "--positions", "all",
                          "--output", kept)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"is there already", done.stderr)
            self.assertEqual(kept.read_text(), "1 2")
            for early in (["logits", kept, "--tokens", "1", "--positions", "0", "--output", kept],
                          ["perplexity", kept, kept, "--save-logits", kept]):
                self.assertIn(b"is there already", strata(*early).stderr)  # before the model

    def test_a_full_device_is_an_error(self):
        model, _ = reference("llama")
        with open("/dev/full", "wb") as full:
            done = strata("logits", model, "--tokens", "1", "--positions", "0", stdout=full)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"cannot write", done.stderr)

    def test_no_command_loses_its_output_silently(self):
        model, _ = reference("llama")
        for arguments in (["show", model], ["show", model, "--json"], ["--help"], ["--version"],
                          ["tokenize", model, "hi"], ["detokenize", model, "1", "2"]):
            with self.subTest(arguments=arguments), open("/dev/full", "wb") as full:
                done = strata(*arguments, stdout=full)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"cannot write to standard output", done.stderr)


if __name__ == "__main__":
    main()
