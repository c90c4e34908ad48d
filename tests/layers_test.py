#!/usr/bin/env python3
"""Shows that layers.py finds what it is there to find."""

import unittest

import layers

HEADERS = {
    "src/base/status.h": "",
    "src/graph/op.h": '#include "base/status.h"\n',
    "src/device/device.h": '#include "graph/op.h"\n',
    "src/device/cpu/cpu_device.h": '#include "device/device.h"\n',
    "src/placement/plan.h": "",
    "src/placement/planner.h": "",
    "src/schedule/step_plan.h": "",
    "src/schedule/scheduler.h": "",
    "src/weights/weight_store.h": '#include "device/device.h"\n#include "placement/plan.h"\n',
    "src/engine/engine.h": "",
    "src/serve/server.h": "",
    "src/serve/http/exchange.h": "",
    "tests/shared_data.h": "#include <gtest/gtest.h>\n",
    "apps/commands.h": "",
}


def check(path, text, **others):
    files = dict(HEADERS)
    files.update({name.replace("__", "/"): body for name, body in others.items()})
    files[path] = text
    return layers.check(files)


class Layers(unittest.TestCase):
    def good(self, path, *includes):
        self.assertEqual(check(path, "".join(f"#include {i}\n" for i in includes)), [])

    def bad(self, path, include, part):
        messages = check(path, f"// a\n#include {include}\n")
        self.assertEqual(len(messages), 1, messages)
        self.assertIn(path, messages[0])
        self.assertIn(part, messages[0])

    def test_headers_alone_are_fine(self):
        self.assertEqual(layers.check(HEADERS), [])

    def test_down_is_allowed_and_up_is_not(self):
        self.good("src/graph/op.cc", '"graph/op.h"', '"base/status.h"', "<vector>", "<sys/mman.h>")
        self.bad("src/base/a.cc", '"graph/op.h"', "not for this folder")
        self.bad("src/graph/a.cc", '"device/device.h"', "not for this folder")
        self.bad("src/device/cpu/a.cc", '"engine/engine.h"', "not for this folder")
        self.bad("src/serve/a.cc", '"schedule/scheduler.h"', "not for this folder")

    def test_single_headers_open_no_folder(self):
        self.good("src/weights/a.cc", '"device/device.h"', '"placement/plan.h"')
        self.bad("src/weights/a.cc", '"device/cpu/cpu_device.h"', "not for this folder")
        self.bad("src/weights/a.cc", '"placement/planner.h"', "not for this folder")
        self.good("src/execute/a.cc", '"schedule/step_plan.h"')
        self.bad("src/execute/a.cc", '"schedule/scheduler.h"', "not for this folder")

    def test_a_folder_in_a_folder_can_be_a_layer(self):
        self.good("src/serve/a.cc", '"serve/http/exchange.h"', '"engine/engine.h"')
        self.good("src/serve/http/a.cc", '"serve/http/exchange.h"', '"base/status.h"')
        self.bad("src/serve/http/a.cc", '"serve/server.h"', "not for this folder")
        self.bad("src/serve/http/a.cc", '"engine/engine.h"', "not for this folder")

    def test_programs_include_anything_but_each_other(self):
        self.good("apps/a.cc", '"commands.h"', '"engine/engine.h"', '"device/cpu/cpu_device.h"')
        self.good("fuzz/a_fuzz.cc", '"graph/op.h"')
        self.bad("bench/a.cc", '"apps/commands.h"', "not for this folder")
        self.bad("src/engine/a.cc", '"apps/commands.h"', "not for this folder")

    def test_only_tests_include_test_headers(self):
        self.good("src/base/a_test.cc", '"tests/shared_data.h"', "<gtest/gtest.h>")
        self.bad("src/base/a.cc", '"tests/shared_data.h"', "not for this folder")
        self.bad("src/base/a.cc", "<gtest/gtest.h>", "no place here")
        self.good("src/base/a_bench.cc", "<benchmark/benchmark.h>")
        self.bad("src/base/a_test.cc", "<benchmark/benchmark.h>", "no place here")
        self.bad("src/base/a_test.cc", '"graph/op.h"', "not for this folder")

    def test_libraries_stay_in_their_folders(self):
        self.good("src/text/tokenizer/a.cc", "<pcre2.h>")
        self.bad("src/text/template/a.cc", "<pcre2.h>", "no place here")
        self.bad("src/gguf/a.cc", "<boost/json.hpp>", "no place here")
        self.good("src/serve/http/a.cc", "<boost/asio/ip/tcp.hpp>")
        self.bad("src/serve/a.cc", "<boost/asio/ip/tcp.hpp>", "no place here")
        self.bad("src/serve/http/a.cc", "<boost/beast/http.hpp>", "no place here")
        self.bad("src/text/a.cc", "<boost/asio.hpp>", "no place here")
        self.bad("src/graph/a.cc", "<immintrin.h>", "no place here")
        self.bad("src/graph/a.cc", "<unheard/of.hpp>", "no place here")

    def test_missing_headers_and_unknown_folders(self):
        self.bad("src/base/a.cc", '"base/none.h"', "no file of the repository")
        self.bad("src/util/a.cc", "<vector>", "does not know")

    def test_comments_and_strings_include_nothing(self):
        text = '// #include "graph/op.h"\nconst S s = R"(\n#include "graph/op.h"\n)";\n'
        self.assertEqual(check("src/base/a.cc", text), [])

    def test_circles_of_files(self):
        messages = check("src/base/a.h", '#include "base/b.h"\n',
                         **{"src__base__b.h": '#include "base/a.h"\n'})
        self.assertEqual(messages,
                         ["includes in a circle: src/base/a.h -> src/base/b.h -> src/base/a.h"])

    def test_the_table_has_no_circle(self):
        self.assertIsNone(layers.cycle_of_layers())
        self.assertEqual(layers.find_cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}), ["b", "c", "b"])


if __name__ == "__main__":
    unittest.main()
