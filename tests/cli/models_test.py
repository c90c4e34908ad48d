#!/usr/bin/env python3
"""strata ls and rm, and the names of models, end to end."""

import json
import os
import pathlib
import unittest

from pull_test import MODEL, Case
from support import main


class Names(Case):
    def setUp(self):
        super().setUp()
        for path in (self.folder / "org/repo/own-F32.gguf",
                     self.home / ".lmstudio/models/pub/repo/theirs.gguf",
                     self.home / ".cache/llama.cpp/theirs.gguf"):
            path.parent.mkdir(parents=True)
            path.write_bytes(MODEL)

    def test_ls_lists_every_cache(self):
        done = self.strata("ls", "--json")
        models = {model["name"]: model for model in json.loads(done.stdout)}
        self.assertEqual(set(models), {"org/repo/own-F32", "pub/repo/theirs", "theirs"})
        own = models["org/repo/own-F32"]
        self.assertEqual((own["bytes"], own["format"], own["where"]), (len(MODEL), "F32", "Strata"))
        self.assertEqual(own["path"], str(self.folder / "org/repo/own-F32.gguf"))
        self.assertLess(own["age_seconds"], 600)
        table = self.strata("ls").stdout.decode().splitlines()
        self.assertRegex(table[0], r"NAME +SIZE +FORMAT +WHERE +AGE")
        self.assertRegex(table[1], r"org/repo/own-F32 +391 KiB +F32 +Strata +just now")

    def test_every_command_takes_names(self):
        for name in ("own-F32", "org/repo", "hf:org/repo:F32", "pub/repo"):
            done = self.strata("show", name)
            self.assertNotIn(b"no such file", done.stderr)
            self.assertIn(b"general.architecture", done.stderr)  # what the tiny file lacks
        messages = self.home / "messages.json"
        messages.write_text('{"messages": []}')
        more = ("run", "tokenize", "detokenize", "perplexity")
        for command in (["show"], ["run"], ["logits", "--tokens", "1", "--positions", "0"],
                        ["perplexity"], ["tokenize"], ["detokenize"],
                        ["template", "--messages", messages]):
            words = ["1"] if command[0] in more else []
            done = self.strata(*command, "nowhere", *words)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn(b"strata ls", done.stderr, command)

    def test_an_ambiguous_name_lists_what_it_may_mean(self):
        (self.home / ".lmstudio/models/pub/repo/more.gguf").write_bytes(MODEL)
        for command in ("show", "rm"):
            done = self.strata(command, "pub/repo")
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"names 2 models: pub/repo/more (LM Studio), pub/repo/theirs (LM Studio)",
                          done.stderr)

    def test_rm_removes_what_is_stratas(self):
        done = self.strata("rm", "pub/repo")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"not Strata's to remove", done.stderr)
        self.assertEqual(self.strata("rm", "own-F32").returncode, 0)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertRegex(self.strata("rm", "own-F32").stderr, b"no model has that name; strata ls")
        self.assertIn(b"the name of the model is empty", self.strata("rm", "").stderr)
        self.assertTrue((self.home / ".lmstudio/models/pub/repo/theirs.gguf").exists())

    def test_rm_takes_files_but_no_beginnings_of_names(self):
        own = self.folder / "org/repo/own-F32.gguf"
        record = pathlib.Path(f"{own}.source")
        self.assertEqual(self.strata("rm", "own").returncode, 1)
        self.assertTrue(own.exists())
        for name in (own.name, own, os.path.relpath(own)):
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_bytes(MODEL)
            record.write_text("source\n\n")
            done = self.strata("rm", name)
            self.assertEqual((done.returncode, self.files()), (0, []), done.stderr)
            self.assertEqual(list(self.folder.iterdir()), [])
        theirs = self.home / ".lmstudio/models/pub/repo/theirs.gguf"
        self.assertIn(b"not Strata's to remove", self.strata("rm", theirs).stderr)
        mine = self.home / "mine.gguf"
        mine.write_bytes(MODEL)
        self.assertIn(b"no model of a cache; if it is to go, delete it yourself",
                      self.strata("rm", mine).stderr)
        self.assertTrue(theirs.exists() and mine.exists())

    def test_the_beginning_of_a_name_is_enough_where_it_is_sole(self):
        done = self.strata("show", "OWN")
        self.assertIn(b"note: OWN means org/repo/own-F32", done.stderr)
        self.assertIn(b"general.architecture", done.stderr)
        (self.folder / "own-Q8_0.gguf").write_bytes(MODEL)
        self.assertIn(b"names 2 models: org/repo/own-F32 (Strata), own-Q8_0 (Strata)",
                      self.strata("show", "own").stderr)


if __name__ == "__main__":
    main()
