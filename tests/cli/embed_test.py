#!/usr/bin/env python3
"""strata embed, end to end: embeddings as an independent implementation has them."""

import json
import math
import unittest
from itertools import accumulate

from support import REFERENCE, ROOT, main, needs, strata, strata_in_shell

DATA = ROOT / "tests" / "data"
BERT, NOMIC, CAUSAL = DATA / "bert.gguf", DATA / "nomic-bert.gguf", DATA / "rwkv7.gguf"
RERANKER = DATA / "reranker.gguf"
QWEN = REFERENCE / "qwen3.gguf"
SENTENCES = json.loads(BERT.with_suffix(".json").read_text())["sentences"]
PAIRS = json.loads(RERANKER.with_suffix(".json").read_text())["pairs"]


def unit(vector):
    norm = math.sqrt(sum(x * x for x in vector))
    return [x / norm for x in vector]


class Embed(unittest.TestCase):
    def embed(self, *arguments, stdin=""):
        done = strata("embed", *arguments, stdin=stdin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode(), done.stderr.decode()

    def assert_close(self, got, expected, tolerance=1e-5):
        self.assertEqual(len(got), len(expected))
        self.assertLess(max(abs(a - b) for a, b in zip(got, expected)), tolerance)

    def test_json_has_the_embeddings_token_counts_and_pooling_of_all_texts(self):
        texts = [sentence["text"] for sentence in SENTENCES]
        for options, kind in ((), "mean"), (("--pooling", "cls"), "cls"):
            out, err = self.embed(BERT, *texts, "--json", "--reference", *options)
            self.assertEqual(err, "")
            got = json.loads(out)
            self.assertEqual(list(got), ["embeddings", "tokens", "pooling"])
            self.assertEqual(got["pooling"], kind)
            self.assertEqual(got["tokens"], [len(s["tokens"]) for s in SENTENCES])
            for vector, sentence in zip(got["embeddings"], SENTENCES, strict=True):
                self.assert_close(vector, unit(sentence[kind]))

    def test_a_line_of_input_gives_a_line_of_the_same_numbers(self):
        lines = "".join(sentence["text"] + "\n" for sentence in SENTENCES)
        out, _ = self.embed(BERT, "--no-normalize", "--reference", stdin=lines)
        rows = [list(map(float, line.split())) for line in out.splitlines()]
        self.assertEqual(len(rows), len(SENTENCES))
        for row, sentence in zip(rows, SENTENCES):
            self.assert_close(row, sentence["mean"])
        again, _ = self.embed(BERT, "--no-normalize", "--reference", "--json", stdin=lines)
        self.assertEqual(json.loads(again)["embeddings"], rows)

    def test_an_embedding_is_the_same_in_any_company(self):
        texts = [sentence["text"] for sentence in SENTENCES]
        together, _ = self.embed(BERT, *texts, "--threads", 2)
        alone = "".join(self.embed(BERT, text, "--threads", 1)[0] for text in texts)
        self.assertEqual(together, alone)

    def test_without_pooling_every_token_has_its_own(self):
        text, count = SENTENCES[1]["text"], len(SENTENCES[1]["tokens"])
        out, _ = self.embed(BERT, text, text, "--pooling", "none")
        self.assertEqual(len(out.splitlines()), 2 * count)
        out, _ = self.embed(BERT, text, text, "--pooling", "none", "--json")
        self.assertEqual([len(rows) for rows in json.loads(out)["embeddings"]], [count, count])

    def test_a_pair_of_texts_gives_a_score(self):
        texts = [f"{pair['query']}\t{pair['document']}" for pair in PAIRS]
        out, err = self.embed(RERANKER, *texts, "--json", "--reference")
        self.assertEqual(err, "")
        got = json.loads(out)
        self.assertEqual(list(got), ["scores", "tokens", "pooling"])
        self.assertEqual(got["tokens"], [len(pair["tokens"]) for pair in PAIRS])
        self.assert_close(got["scores"], [pair["score"] for pair in PAIRS])
        lines, _ = self.embed(RERANKER, "--reference", stdin="\n".join(texts) + "\n")
        self.assertEqual(list(map(float, lines.splitlines())), got["scores"])

    def test_a_file_that_names_no_pooling_gets_a_note(self):
        _, err = self.embed(NOMIC, "salt")
        self.assertIn("taking mean", err)

    @needs(QWEN)
    def test_a_causal_model_gives_its_last_tokens_state(self):
        texts = ["Why is the sea salty?", "salt", "Rivers carry salt into the sea. " * 20]
        out, err = self.embed(QWEN, *texts, "--threads", 2)
        self.assertIn("taking last", err)
        alone = "".join(self.embed(QWEN, text, "--threads", 1)[0] for text in texts)
        self.assertEqual(out, alone)
        every, _ = self.embed(QWEN, *texts, "--pooling", "none")
        ends = list(accumulate(json.loads(self.embed(QWEN, *texts, "--json")[0])["tokens"]))
        self.assertEqual(out.splitlines(), [every.splitlines()[end - 1] for end in ends])
        self.assertEqual(ends[-1], len(every.splitlines()))

    def refusal(self, *arguments, code=1, stdin=""):
        done = strata(*arguments, stdin=stdin)
        self.assertEqual((done.returncode, done.stdout), (code, b""), done.stderr)
        return done.stderr.decode()

    def test_what_cannot_be_done_is_refused_with_the_reason(self):
        self.assertIn("strata embed", self.refusal("run", BERT, "Why?"))
        self.assertIn("tokenizer.ggml.model", self.refusal("embed", CAUSAL, "salt"))
        self.assertIn("no text", self.refusal("embed", BERT))
        self.refusal("embed", BERT, "a", "--pooling", "rank", code=2)
        self.assertIn("text 2", self.refusal("embed", RERANKER, "a\tb", "no pair"))
        self.assertIn("line 2", self.refusal("embed", RERANKER, stdin="a\tb\nno pair\n"))
        self.assertIn("--pooling", self.refusal("embed", RERANKER, "a\tb", "--pooling", "cls"))
        self.assertIn("scores pairs", self.refusal("run", RERANKER, "Why?"))

    def test_input_that_cannot_be_read_or_does_not_end_is_refused(self):
        for redirection, words in [("<&-", "cannot read standard input: Bad file descriptor"),
                                   ("< /", "cannot read standard input: Is a directory"),
                                   ("< /dev/zero", "standard input has more than 64.0 MiB")]:
            done = strata_in_shell(redirection, "embed", BERT)
            self.assertEqual((done.returncode, done.stdout), (1, b""))
            self.assertIn(words, done.stderr.decode())

    def test_a_text_that_is_too_long_is_named_with_its_tokens_and_the_limit(self):
        for model, lines, options, words in [
                (BERT, ["a", "a " * 400], (), "line 2 has 402 tokens, but the model's limit of "
                                              "positions is 320"),
                (BERT, ["a", "a b c d"], ("--context", 4), "line 2 has 6 tokens, but --context "
                                                           "is 4"),
                (NOMIC, ["a " * 70000], (), "line 1 has 70002 tokens, but an encoder's limit")]:
            with self.subTest(words=words):
                stdin = "".join(line + "\n" for line in lines)
                self.assertIn(words, self.refusal("embed", model, *options, stdin=stdin))
        self.assertIn("text 2 has 6", self.refusal("embed", BERT, "a", "a b c d", "--context", 4))

    def test_lines_that_are_not_utf8_are_named(self):
        _, err = self.embed(BERT, stdin=b"salt\nsa\xfflt\nwater\n\xc3\n")
        self.assertIn("line 2 and 1 more: not UTF-8", err)
        _, err = self.embed(BERT, "s\N{LATIN SMALL LETTER A WITH DIAERESIS}lt")
        self.assertEqual(err, "")

    @needs(QWEN)
    def test_a_text_that_memory_has_no_room_for_is_named(self):
        err = self.refusal("embed", QWEN, "--memory", "150M", stdin="a\n" + "a b " * 200000)
        self.assertRegex(err, r"line 2, the longest, has \d+ tokens: the model needs")

    @needs(QWEN)
    def test_blank_lines_are_named_where_they_have_no_tokens(self):
        self.assertIn("line 2: no tokens", self.refusal("embed", QWEN, stdin="a\n\nb\n"))
        self.assertIn("line 1 and 2 more: no tokens",
                      self.refusal("embed", QWEN, stdin="\n\na\n\n"))
        self.assertIn("text 1: no tokens", self.refusal("embed", QWEN, ""))
        self.assertEqual(len(self.embed(BERT, stdin="a\n\nb\n")[0].splitlines()), 3)


if __name__ == "__main__":
    main()
