#!/usr/bin/env python3
"""strata bench serve, end to end, against a server of known times and against Strata's own."""

import collections
import json
import pathlib
import tempfile
import time
import unittest

from fake_openai import FakeServer
from support import REFERENCE, main, needs, strata

MODEL = REFERENCE / "llama.gguf"
LITTLE = ("-p", 20, "-n", 5)


def after_warm_up(*scripts):
    """A server whose requests of a load follow these, one after the other."""
    return FakeServer(lambda number, _: scripts[(number - 1) % len(scripts)] if number else {})


class AgainstAFake(unittest.TestCase):
    def report(self, server, *options):
        done = strata("bench", "serve", server.url, "--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.said = done.stderr.decode()
        return json.loads(done.stdout)

    def prompts(self, server):
        """What was asked after the warm-up, in no order."""
        return sorted(json.dumps([body["messages"], body["max_tokens"]])
                      for body in server.bodies[1:])

    def refused(self, word, *options, code=1):
        done = strata("bench", "serve", *options)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(word, done.stderr.decode())
        self.assertEqual(done.stdout, b"")

    def test_times_are_those_that_the_server_takes(self):
        def script(number, _):  # of 20 requests, two are late by far
            return {"first": 0.5 if number in (5, 11) else 0.1, "gap": 0.02, "cached": 4}
        with FakeServer(script) as server:
            got = self.report(server, *LITTLE, "-u", 4, "-r", 20, "--good", "ttft:300")
        total = got["total"]
        self.assertEqual((total["requests"], total["complete"], total["good"]), (20, 20, 18))
        self.assertEqual(total["good_share"], 0.9)
        self.assertEqual(total["errors"], {})
        self.assertEqual((total["prompt_tokens"], total["answer_tokens"]), (400, 100))
        self.assertEqual(total["cached_tokens"], 80)
        for name, wanted in (("ttft_ms", {"p50": 100, "p95": 500, "highest": 500}),
                             ("tpot_ms", {"p50": 20}), ("itl_ms", {"p50": 20}),
                             ("e2e_ms", {"p50": 180, "highest": 580})):
            for key, value in wanted.items():  # a busy machine adds, it takes nothing away
                self.assertGreaterEqual(total[name][key], 0.98 * value, (name, key))
                self.assertLess(total[name][key], 2.5 * value, (name, key))
        self.assertEqual(total["ttft_ms"]["count"], 20)
        self.assertEqual(total["itl_ms"]["count"], 80)
        self.assertLess(total["ttft_ms"]["p50"], total["ttft_ms"]["p99"])
        self.assertAlmostEqual(got["answer_tokens_per_second"] * got["seconds"], 100, places=1)
        self.assertEqual(got["full_load"]["streams"], 4)
        self.assertLess(got["full_load"]["tokens_per_second"], 4 / 0.0195)
        self.assertGreater(got["full_load"]["tokens_per_second"], 4 / 0.05)

    def test_errors_are_counted_by_their_kind(self):
        kinds = [{}, {"status": 503}, {"cut": 2}, {"fail": 3}, {"status": 400}, {"first": 30}, {}]
        with FakeServer(lambda number, _: kinds[max(number - 1, 0) % 7]) as server:
            got = self.report(server, *LITTLE, "-u", 1, "-r", 14, "--timeout", 0.5)
        self.assertEqual(got["total"]["errors"], {"HTTP 400": 2, "HTTP 503": 2, "cut off": 2,
                                                  "failed": 2, "timeout": 2})
        self.assertEqual(got["total"]["complete"], 4)
        self.assertIn("failed: the engine stopped", self.said)
        self.assertIn("HTTP 503: as the test says", self.said)

    def test_a_load_without_one_answer_fails_with_the_first_reason(self):
        with FakeServer(lambda number, _: {"status": 503} if number else {}) as server:
            done = strata("bench", "serve", server.url, "--json", *LITTLE, "-u", 2, "-r", 6)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)["total"]["errors"], {"HTTP 503": 6})
        self.assertIn("none of the 6 requests had a whole answer; the first: HTTP 503: as the test",
                      done.stderr.decode())

    def test_what_came_instead_of_a_stream_is_said(self):
        pages = {'{"error": {"message": "no room"}}': "failed: no room",
                 "<html>\x1b[2J" + 500 * "a": "no stream: <html>\\x1b[2Jaaa",
                 '{"choices": [{"text": "whole"}]}': 'no stream: {"choices"'}
        for page, said in pages.items():
            with self.subTest(page[:40]), after_warm_up({"page": page}) as server:
                done = strata("bench", "serve", server.url, "--json", *LITTLE, "-u", 1, "-r", 2)
                self.assertEqual(done.returncode, 1)
                self.assertEqual(json.loads(done.stdout)["total"]["errors"],
                                 {said.split(":")[0]: 2})
                self.assertIn(said, done.stderr.decode())
                self.assertLess(len(done.stderr), 1000)

    def test_an_answer_ends_with_its_last_event_whatever_the_connection_does(self):
        with FakeServer(lambda *_: {"gap": 0.001, "hold": 60}) as server:
            got = self.report(server, *LITTLE, "-u", 2, "-r", 6, "--timeout", 30)
        self.assertEqual((got["total"]["complete"], got["total"]["errors"]), (6, {}))
        self.assertLess(got["total"]["e2e_ms"]["highest"], 20_000)

    def test_an_answer_without_an_end_is_given_up(self):
        text = {"choices": [{"index": 0, "delta": {"content": 100_000 * "y"}}]}
        many = "\n\ndata: ".join(5000 * ['{"choices":[{"delta":{"tool_calls":[]}}]}'])
        endless = {"endless": [text, many], "malformed": ["{{{", 100_000 * "["]}
        for error, each in endless.items():
            for data in each:
                with self.subTest(error, data=str(data)[:80]), \
                        after_warm_up({"endless": data}, {}) as server:
                    got = self.report(server, *LITTLE, "-u", 1, "-r", 2, "--timeout", 60)
                    self.assertEqual((got["total"]["complete"], got["total"]["errors"]),
                                     (1, {error: 1}))
                    self.assertIn(f"note: {error}: ", self.said)

    def test_counts_that_cannot_be_true_are_as_missing_ones(self):
        odd = [-7, -2**63, 2**31 + 1, 2**63 - 1, 2**64, 1e300, 2.5, "5", [5], {}, True]
        missing = [{}, {"prompt_tokens": None, "completion_tokens": None}, [1], None,
                   {"prompt_tokens": 0, "completion_tokens": 0, "prompt_tokens_details": 7}]
        usages = [*({"prompt_tokens": each, "completion_tokens": each,
                     "prompt_tokens_details": {"cached_tokens": each}} for each in odd), *missing]
        with after_warm_up(*({"usage": each} for each in usages)) as server:
            got = self.report(server, *LITTLE, "-u", 1, "-r", len(usages))["total"]
        self.assertEqual((got["complete"], got["errors"]), (len(usages), {}))
        self.assertEqual((got["prompt_tokens"], got["cached_tokens"], got["answer_tokens"]),
                         (0, 0, 5 * len(usages)))
        self.assertEqual(got["tpot_ms"]["count"], len(usages))
        self.assertIn(f"note: {len(odd)} answers came with counts of tokens that cannot", self.said)
        most = {"prompt_tokens": 2**31, "completion_tokens": 7.0}
        with FakeServer(lambda *_: {"usage": most}) as server:
            got = self.report(server, *LITTLE, "-u", 1, "-r", 2)["total"]
        self.assertEqual((got["prompt_tokens"], got["answer_tokens"]), (2**32, 14))
        self.assertEqual(self.said, "")

    def test_as_many_streams_are_named_as_there_were_at_a_time(self):
        def text(users, requests):
            with FakeServer(lambda *_: {"gap": 0.02}) as server:
                done = strata("bench", "serve", server.url, *LITTLE, "-u", users, "-r", requests)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout.decode()
        self.assertIn("in which 3 streams, the most at a time, gave text", text(8, 3))
        self.assertNotIn("at a time", text(1, 3))

    def test_the_same_seed_asks_the_same(self):
        lengths = ("-p", "uniform:5:60", "-n", "lognormal:6:0.7:20", "--shared-prefix", 12)
        asked = []
        for seed, users in (7, 1), (7, 5), (8, 5):
            with FakeServer() as server:
                self.report(server, *lengths, "-u", users, "-r", 30, "--seed", seed)
                asked.append(self.prompts(server))
                bodies = server.bodies[1:]
        self.assertEqual(asked[0], asked[1])
        self.assertNotEqual(asked[1], asked[2])
        texts = [body["messages"][0]["content"].split() for body in bodies]
        self.assertEqual(len({" ".join(words[:12]) for words in texts}), 1)
        own = [len(words) - 12 for words in texts]
        self.assertTrue(all(5 <= length <= 60 for length in own), own)
        self.assertGreater(len(set(own)), 10)
        self.assertTrue(all(1 <= body["max_tokens"] <= 20 for body in bodies))

    def test_help_says_what_the_same_seed_does_to_a_cache(self):
        told = b" ".join(strata("bench", "serve", "--help").stdout.split())
        self.assertIn(b"for another run take another", told)

    def test_help_promises_what_is_printed(self):
        told = b" ".join(strata("bench", "serve", "--help").stdout.split())
        self.assertIn(b"the share of requests within --good", told)
        self.assertIn(b"how many of them there were per second", told)
        with after_warm_up({}, {}, {}, {"status": 503}) as server:
            done = strata("bench", "serve", server.url, *LITTLE, "-r", 8, "--good", "e2e:60000")
        self.assertRegex(done.stdout.decode(), r", 6 good \(75\.0 %, [0-9.]+/s\)\n")

    def test_settings_say_what_was_asked_for(self):
        own = {"requests": 3, "seconds": 50.5, "timeout": 40, "body": {"top_p": 0.5},
               "good": {"ttft_ms": 30000, "e2e_ms": 40000.5}}
        asked = ("-r", 3, "--seconds", 50.5, "--timeout", 40, "--body", '{"top_p": 0.5}',
                 "--good", "ttft:30000,e2e:40000.5")
        plain = {"requests": 32, "seconds": None, "timeout": 600, "body": None, "good": None}
        for options, wanted in (asked, own), ((), plain):
            with self.subTest(options), FakeServer() as server:
                settings = self.report(server, *LITTLE, *options)["settings"]
                self.assertEqual({name: settings.get(name) for name in wanted}, wanted)

    def test_distinct_prompts_come_again_and_members_are_sent(self):
        with tempfile.TemporaryDirectory() as folder:
            keys = pathlib.Path(folder) / "keys"
            keys.write_text("secret\n")
            with FakeServer() as server:
                self.report(server, *LITTLE, "-r", 9, "--distinct", 3, "--ignore-eos", "--body",
                            '{"top_p": 0.5}', "--endpoint", "completions", "--api-key-file", keys)
        counts = collections.Counter(body["prompt"] for body in server.bodies[1:])
        self.assertEqual(sorted(counts.values()), [3, 3, 3])
        for body in server.bodies:
            self.assertEqual((body["ignore_eos"], body["top_p"], body["model"]),
                             (True, 0.5, "fake"))
        self.assertTrue(all(each["Authorization"] == "Bearer secret" for each in server.headers))

    def test_arrivals_keep_their_rate_whatever_the_server_does(self):
        with FakeServer(lambda *_: {"first": 0.4}) as server:
            got = self.report(server, "-p", 3, "-n", 1, "--rate", 100, "-r", 50)
        self.assertEqual(got["total"]["complete"], 50)
        self.assertLess(got["seconds"], 10)  # one after the other they take 20 s

    def test_time_ends_a_load(self):
        with FakeServer(lambda *_: {"first": 0.05}) as server:
            got = self.report(server, "-p", 3, "-n", 1, "-u", 2, "--seconds", 1)
        self.assertTrue(2 <= got["total"]["complete"] <= 60, got["total"])

    def test_a_load_with_nothing_more_to_ask_does_not_wait_for_its_time(self):
        loads = {("-u", 2, "-r", 4): 4, ("--rate", 100, "-r", 5): 5,
                 ("-u", 2, "--burst", 3, "--burst-after", 0.2): 3}
        for load, least in loads.items():
            with self.subTest(load), FakeServer(lambda *_: {"first": 0.05}) as server:
                start = time.monotonic()
                got = self.report(server, "-p", 3, "-n", 1, *load, "--seconds", 60)
                self.assertLess(time.monotonic() - start, 30)
                self.assertGreaterEqual(got["total"]["complete"], least)

    def test_a_burst_is_told_apart_from_the_steady_streams(self):
        def script(_, body):
            steady = body["max_tokens"] == 400
            return {"gap": 0.01} if steady else {"first": 0.3}
        with FakeServer(script) as server:
            got = self.report(server, "-p", 3, "-n", 400, "-u", 3, "--burst", 6, "--burst-after",
                              0.5, "--burst-answer", 1)
        groups = {group["group"]: group for group in got["groups"]}
        self.assertEqual(groups["burst"]["complete"], 6)
        self.assertEqual(groups["steady"]["left"], 3)
        self.assertGreaterEqual(groups["burst"]["ttft_ms"]["p50"], 295)
        for phase, least in ("before", 60), ("prompts", 30):
            self.assertGreater(got["steady_itl_ms"][phase]["count"], least / 3)
            self.assertGreaterEqual(got["steady_itl_ms"][phase]["p50"], 9.8)

    def test_agents_tell_what_an_agent_does(self):
        with FakeServer(lambda *_: {"gap": 0.001}, context=2000) as server:
            got = self.report(server, "--agents", 2, "--turns", 8, "--turn-tokens", 10, "-n", 5,
                              "--shared-prefix", 100)
        groups = {group["group"]: group for group in got["groups"]}
        turns = [f"turn {i}" for i in range(1, 9) if i != 7]
        self.assertEqual(set(groups), {*turns, "restart", "disconnect", "side call"})
        self.assertEqual({name: groups[name]["requests"] for name in groups},
                         {name: 2 for name in groups})
        self.assertEqual(groups["disconnect"]["left"], 2)
        self.assertEqual(got["total"]["errors"], {})
        lengths = [groups[name]["prompt_tokens"] for name in turns[:6]]
        self.assertEqual([b - a for a, b in zip(lengths, lengths[1:])], [2 * 15] * 5)
        self.assertEqual(groups["restart"]["prompt_tokens"], lengths[0])
        self.assertLess(got["settings"]["prompt"], 2000)
        longest = max(len(body["messages"]) for body in server.bodies)
        self.assertEqual(longest, 2 + 2 * 5)  # of six turns, before the restart

    def test_tables_say_the_same(self):
        with FakeServer(tokenizes=False) as server:
            done = strata("bench", "serve", server.url + "/v1/", *LITTLE, "-r", 3)
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("time to first text", "between texts", "p99", "3 complete",
                     "prompts: 60 tokens"):
            self.assertIn(word, done.stdout.decode())
        self.assertIn("a word is taken for one", done.stderr.decode())

    def test_what_makes_no_load_is_refused(self):
        self.refused("no server can be reached", "http://127.0.0.1:1")
        self.refused("write http://", "https://127.0.0.1:1")
        self.refused("name the address")
        with FakeServer(lambda *_: {"status": 401}) as server:
            self.refused("does not answer: HTTP 401: as the test says (see --api-key-file)",
                         server.url)
            self.refused("is no length", server.url, "-p", "normal:9")
            self.refused("between 1 and", server.url, "-p", "uniform:0:3")
            self.refused("the least length, 9, is above the most, 3", server.url, "-p",
                         "uniform:9:3")
            self.refused("is no limit", server.url, "--good", "x:1")
            self.refused("a load of its own", server.url, "--agents", 1, "--burst", 2)
        with FakeServer(key="secret") as server:
            self.refused("/v1/models: the server answered 401", server.url)
            self.refused("(see --api-key-file)", server.url)
        self.refused("excludes", "http://a", "-m", "model", code=2)
        done = strata("bench", "-p", 3, "serve", "http://127.0.0.1:1")
        self.assertIn(b"is for strata bench", done.stderr)
        self.assertEqual(strata("bench").returncode, 2)


@needs(MODEL)
class AgainstStrata(unittest.TestCase):
    def test_a_server_is_started_and_its_tokens_counted(self):
        done = strata("bench", "serve", "-m", MODEL, "--serve-args", "--threads 1 --parallel 4",
                      "--endpoint", "completions", "-p", 30, "-n", 8, "-u", 4, "-r", 12,
                      "--shared-prefix", 40, "--ignore-eos", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = json.loads(done.stdout)
        self.assertEqual(got["settings"]["model"], "llama")
        total = got["total"]
        self.assertEqual((total["complete"], total["errors"]), (12, {}))
        self.assertEqual(total["answer_tokens"], 12 * 8)
        if got["settings"]["tokens_counted"]:
            self.assertLess(abs(total["prompt_tokens"] - 12 * 70), 12 * 3)
        self.assertGreater(total["cached_tokens"], 0)

    def test_a_server_that_cannot_start_is_an_error_with_its_reason(self):
        done = strata("bench", "serve", "-m", "/nowhere/model.gguf")
        self.assertEqual(done.returncode, 1)
        self.assertIn("model.gguf", done.stderr.decode())


if __name__ == "__main__":
    main()
