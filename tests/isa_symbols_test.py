#!/usr/bin/env python3
"""Shows that isa_symbols.py finds symbols that leak, also those that only -O0 brings out."""

import pathlib
import tempfile
import unittest

import isa_symbols

SORTS = """
#include <algorithm>
namespace { void sort(int* a, int n) { std::sort(a, a + n); } }
using Sort = void (*)(int*, int);
extern constinit const Sort kTable = sort;
"""
OWN_INLINE = """
inline int twice(int a) { return 2 * a; }
namespace { int four(int a) { return twice(twice(a)); } }
using Times = int (*)(int);
extern constinit const Times kTable = four;
"""
CLEAN = """
namespace { int twice(int a) { return 2 * a; } }
using Times = int (*)(int);
extern constinit const Times kTable = twice;
"""


class IsaSymbols(unittest.TestCase):
    def violation(self, text, *more):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "isa.cc"
            source.write_text(text, encoding="utf-8")
            entry = {"directory": folder, "file": "other.cc",
                     "command": "g++ -std=c++20 -O2 -o other.o -c other.cc"}
            return isa_symbols.violation(entry, source, list(more))

    def test_a_table_alone_is_fine(self):
        self.assertIsNone(self.violation(CLEAN))
        self.assertIsNone(self.violation(CLEAN, "-O0"))

    def test_templates_of_the_library_leak(self):
        self.assertIn("std::", self.violation(SORTS, "-O0"))

    def test_inline_functions_leak_without_optimization(self):
        self.assertIsNone(self.violation(OWN_INLINE))
        self.assertIn("twice(int)", self.violation(OWN_INLINE, "-O0"))

    def test_no_symbol_and_no_object_are_findings_too(self):
        self.assertIn("exports 0 symbols", self.violation("namespace { int a; }\n"))
        self.assertIn("does not compile", self.violation("int int;\n"))


if __name__ == "__main__":
    unittest.main()
