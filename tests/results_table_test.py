#!/usr/bin/env python3
"""The table of speeds shows the results, and damaged results or a README without marks fail."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))

from results_table import BEGIN, END, NONE, BadResults, table, with_table  # noqa: E402


def result(**changes):
    speed = {"median": 123.4, "lowest": 120.0, "highest": 125.6, "values": [120, 123.4, 125.6]}
    row = {"test": "tg16 @ 64", "batched": False, "tokens_per_second": speed,
           "bytes_per_second": 2.5e10, "operations_per_second": 1.234e9, "ratio": 1.267,
           "peer_tokens_per_second": {"median": 97.4}}
    whole = {"strata": {"version": "1", "commit": "c0ffee"}, "limits": {"read_bandwidth": 5e10},
             "machine": {"cpu": "A|B", "isa": "avx2", "cores": 2, "threads": 1},
             "model": {"file": "small.gguf"}, "settings": {"peer": {"name": "other"}},
             "rows": [row]}
    return json.dumps(whole | changes)


class ResultsTable(unittest.TestCase):
    def test_a_row_shows_both_programs_and_the_share_of_the_limit(self):
        text = table({"a.json": result()})
        self.assertIn("A\\|B, 2 cores, avx2, 1 threads, Strata c0ffee:\n\n| model |", text)
        self.assertIn("| small | tg16 @ 64 | 123 | 120 to 126 | 25 | 50 % | 1.23 | other | 97.4 | "
                      "1.27 |\n", text)

    def test_limits_and_peers_may_lack(self):
        rows = json.loads(result())["rows"]
        del rows[0]["ratio"]
        self.assertIn("| 25 |  | 1.23 |  |  |  |\n",
                      table({"a.json": result(limits=None, rows=rows)}))
        self.assertEqual(table({}), NONE + "\n")

    def test_limits_measured_with_a_row_come_first(self):
        rows = json.loads(result())["rows"]
        rows[0]["limits"] = {"read_bandwidth": 2.5e10}
        self.assertIn("| 25 | 100 % |", table({"a.json": result(rows=rows)}))

    def test_files_come_by_name_and_machines_apart(self):
        other = result(model={"file": "first.gguf"})
        text = table({"b.json": result(), "a.json": other})
        self.assertLess(text.index("| first |"), text.index("| small |"))
        self.assertEqual(text.count("| model |"), 1)
        old = result(strata={"commit": "0ld"})
        self.assertEqual(table({"b.json": result(), "a.json": old}).count("| model |"), 2)

    def test_soaks_and_what_streams_cost_are_shown(self):
        counts = {"answers equal to the idle server's": 9, "clients that left": 8,
                  "told to come back (503)": 7, "bytes that are no request": 6,
                  "models loaded and unloaded": 5, "bodies refused": 4}
        soak = result(kind="soak", counts=counts, minutes=15.0, memory={"growth": 0.0012})
        self.assertIn("| small | 15 | 9 | 8 | 7 | 6 | 5 | +0.12 % |\n", table({"a.json": soak}))
        delivery = [{"streams": 32, "tokens_per_second": 49000.0, "loss_percent": 2.0}]
        served = result(kind="serve", rows=[], burst=None, delivery=delivery,
                        settings={"prompt": 1, "answer": 1, "peer": {"name": "other"}})
        self.assertIn("| 32 streams | 50000 | 49000 | 98 % |", table({"a.json": served}))

    def test_servers_have_a_table_of_their_own(self):
        row = {"users": 8, "in_process": 200.0, "served": 190.0, "answers": 150.0,
               "peer_answers": 60.0}
        settings = {"prompt": 64, "answer": 32, "peer": {"name": "other"}}
        burst = {"prompts": 50, "ttft_p95_ms": 1500.0, "peer_ttft_p95_ms": 4000.0}
        served = result(kind="serve", rows=[row], settings=settings, burst=burst)
        text = table({"a.json": result(), "b.json": served})
        self.assertEqual(text.count("| model |"), 2)
        self.assertIn("| small | 8 users, 64 + 32 tokens | 200 | 190 | 95 % | 150 | other | 60 | "
                      "2.50 |\n", text)
        self.assertIn("at once beside 4 streams: s to first token, p95 |  |  |  | 1.5 | other | "
                      "4 | 0.38 |\n", text)
        burst.update({"alone_ttft_p95_ms": 1000.0, "peer_alone_ttft_p95_ms": 4000.0})
        self.assertIn("at once: s to first token, p95 |  |  |  | 1 | other | 4 | 0.25 |\n",
                      table({"b.json": result(kind="serve", rows=[row], settings=settings,
                                              burst=burst)}))
        del row["peer_answers"]
        alone = result(kind="serve", rows=[row], settings=settings, burst=None)
        self.assertIn("| 95 % | 150 |  |  |  |\n", table({"b.json": alone}))
        with self.assertRaisesRegex(BadResults, "b.json is no output"):
            table({"b.json": result(kind="serve", rows=[{}], settings=settings, burst=None)})

    def test_damaged_results_are_refused_by_name(self):
        for text in ("", "[]", "{}", "null", result(rows=[{}]), result(rows=3), result(model=[]),
                     result(settings={})):
            with self.assertRaisesRegex(BadResults, "a.json is no output"):
                table({"a.json": text})

    def test_only_what_is_between_the_marks_changes(self):
        readme = f"before\n{BEGIN}\nold\n{END}\nafter\n"
        self.assertEqual(with_table(readme, "new\n"), f"before\n{BEGIN}\nnew\n{END}\nafter\n")
        for damaged in ("", f"{BEGIN}\n", f"{END}\n{BEGIN}\n"):
            with self.assertRaisesRegex(BadResults, "README.md lacks"):
                with_table(damaged, "new\n")


if __name__ == "__main__":
    unittest.main()
