#!/usr/bin/env python3
"""Shows that docs.py finds what the documents only claim."""

import unittest

import docs

TEXTS = {
    "README.md": "",
    "ARCHITECTURE.md": "`base/` `graph/`\n",
    "CONTRIBUTING.md": "",
    "Makefile": "run: build\nbuild:\n\techo $(PROMPT)\n",
    "CMakeLists.txt": "add_executable(strata main.cc)\n",
    "apps/run.cc": 'app.add_subcommand("run", "answer"); run->add_option("--top-k", k);\n',
    "src/base/status.h": "class Status { bool ok() const; };\n",
    "src/graph/op.h": "struct MatMul;\n",
    "src/graph/op.cc": "",
}


class Docs(unittest.TestCase):
    def check(self, text, **more):
        return docs.check({**TEXTS, "README.md": text, **more})

    def good(self, *texts):
        for text in texts:
            self.assertEqual(self.check(text + "\n"), [], text)

    def bad(self, text, part):
        messages = self.check("one\n" + text + "\n")
        self.assertEqual(len(messages), 1, messages)
        self.assertTrue(messages[0].startswith("README.md:"), messages)
        self.assertIn(part, messages[0])

    def test_paths(self):
        self.good("`src/base/status.h`", "`base/status.h`", "`graph/`", "`graph/op.{h,cc}`",
                  "`graph/*.h`", "`Makefile`", "[x](src/graph/op.h)", "`~/.cache/x`", "`<model>`",
                  "`src/<name>/op.h`", "`*.cc`", "`src/graph/o*.h`")
        self.bad("`src/base/none.h`", "src/base/none.h is not there")
        self.bad("`graph/op.{h,py}`", "is not there")
        self.bad("`placement/`", "is not there")
        self.bad("`status.cc`", "is not there")
        self.bad("`graph/*.py`", "is not there")
        self.bad("`graph/<name>.py`", "is not there")
        self.bad("`*.py`", "is not there")
        self.bad("[x](src/none.h)", "leads nowhere")

    def test_make_targets(self):
        self.good("`make run`", "`make run build`", '`make run PROMPT="a b"`', "```\nmake run\n```")
        self.bad("`make dance`", "no target dance")
        self.bad("`make run dance`", "no target dance")
        self.bad("`make run NONE=1`", "variable NONE")
        self.bad("```\nmake dance\n```", "no target dance")

    def test_subcommands_and_options(self):
        self.good("`build/strata run <model>`", "`strata run --top-k 4 m.gguf`", "`--top-k`",
                  '```sh\nbuild/strata run m.gguf "dance now"  # comment\n```')
        self.bad("`strata dance`", "no subcommand dance")
        self.bad("```\n$ build/strata dance\n```", "no subcommand dance")
        self.bad("`strata run --top-x`", "no option --top-x")
        self.bad("`--top-x`", "no option --top-x")

    def test_identifiers(self):
        self.good("`Status`", "`Status::ok()`", "`struct MatMul`")
        self.bad("`Statu`", "Statu is not in the code")
        self.bad("`Status::fine()`", "fine is not in the code")

    def test_identifiers_of_documents_do_not_count(self):
        self.bad("`Wonder` (Wonder)", "Wonder is not in the code")

    def test_documents_and_folders_are_complete(self):
        self.assertEqual(docs.check({**TEXTS, "ARCHITECTURE.md": "`base/`\n"}),
                         ["ARCHITECTURE.md: does not tell of src/graph/"])
        without = {path: text for path, text in TEXTS.items() if path != "CONTRIBUTING.md"}
        self.assertEqual(docs.check(without), ["CONTRIBUTING.md: is not there"])

    def test_architecture_stays_short(self):
        long = TEXTS["ARCHITECTURE.md"] + "\n" * 200
        self.assertEqual(docs.check({**TEXTS, "ARCHITECTURE.md": long}),
                         ["ARCHITECTURE.md:201: 201 lines, more than 200"])


if __name__ == "__main__":
    unittest.main()
