#!/usr/bin/env python3
"""strata serve: what holds whichever protocol a client speaks."""

import pathlib
import struct
import unittest

from serving import CHAT, COMPLETIONS, GREEDY, HELLO, TINY, Served, Server, exactly, scratch
from support import REFERENCE, main, needs


@needs(REFERENCE)
class OneBos(unittest.TestCase):
    def test_whoever_writes_it_and_whichever_way_in(self):
        key = b"tokenizer.ggml.add_bos_token" + struct.pack("<I", 7)
        data = TINY.read_bytes()
        self.assertEqual(data.count(key + b"\0"), 1)
        with scratch() as folder:
            model = pathlib.Path(folder) / "llama.gguf"
            model.write_bytes(data.replace(key + b"\0", key + b"\1"))
            with Server(model, "--context", 512, "--memory", "512M") as server:
                def count(path, **body):
                    answer = server.post(path, {**body, "stream": False})
                    self.assertEqual(answer.status, 200, answer.body)
                    usage = answer.json().get("usage", answer.json())
                    return usage.get("prompt_tokens", usage.get("prompt_eval_count"))
                text = server.post("/tokenize", {"content": "hello"}).json()["tokens"]
                chat = server.post("/apply-template", {"messages": HELLO}).json()["prompt"]
                chat = server.post("/tokenize", {"content": chat}).json()["tokens"]
                self.assertEqual((text.count(510), chat[:2].count(510)), (0, 1))
                for prompt in ("hello", "<|bos|>hello"):
                    echo = server.post(COMPLETIONS, {"prompt": prompt, "echo": True, "logprobs": 0,
                                                     "max_tokens": 0}).json()["choices"][0]
                    self.assertEqual(len(echo["logprobs"]["tokens"]), 1 + len(text))
                    self.assertEqual(echo["logprobs"]["tokens"][0], "<|bos|>")
                    self.assertEqual(count(COMPLETIONS, prompt=prompt, max_tokens=1),
                                     1 + len(text))
                    self.assertEqual(count("/api/generate", prompt=prompt, raw=True,
                                           options={"num_predict": 1}), 1 + len(text))
                self.assertEqual(count(CHAT, messages=HELLO, max_tokens=1), len(chat))
                for path, body in (("/api/generate", {"prompt": "hello"}),
                                   ("/api/chat", {"messages": HELLO})):
                    self.assertEqual(count(path, **body, options={"num_predict": 1}), len(chat))


@needs(REFERENCE)
class Contract(Served):
    def test_paths_say_which_methods_they_take(self):
        for method, path, allowed in (("GET", CHAT, "POST, OPTIONS"),
                                      ("POST", "/api/tags", "GET, HEAD, OPTIONS"),
                                      ("GET", "/v1/admin/unload-model/x",
                                       "DELETE, POST, OPTIONS")):
            answer = self.server.ask(method, path)
            self.assertEqual((answer.status, answer.headers["allow"]), (405, allowed))
            answer = self.server.ask("OPTIONS", path)
            self.assertEqual((answer.status, answer.headers["allow"]), (204, allowed))

    def test_refusals_name_the_options_that_help(self):
        for header, option in (("Host", "--allow-host"), ("Origin", "--allow-origin")):
            answer = self.server.get("/v1/models", **{header: "http://evil.example"})
            self.assertEqual(answer.status, 403)
            self.assertIn(option, answer.error()["message"])

    def test_schemas_that_allow_nothing_say_so(self):
        for schema, what in ((False, "false allows no value"), ({"enum": []}, "list is empty"),
                             ({"type": "string", "enum": [1]}, "of the type")):
            error = self.refused(CHAT, {"messages": HELLO, "response_format": {
                "type": "json_schema", "json_schema": {"schema": schema}}})
            self.assertIn(what, error["message"])

    def test_what_is_here_but_not_served_is_not_pulled(self):
        self.assertIn("load-model", self.refused("/api/pull", {"model": "absent"}, 404))

    def test_fields_that_do_not_go_together_are_named(self):
        for field, more in (("mirostat", {"mirostat": 1}),
                            ("temperature", {"samplers": ["top_k"]})):
            error = self.refused(CHAT, {"messages": HELLO, **GREEDY, **more})
            self.assertEqual(error["param"], field, error)
            self.assertIn(f"`{field}`", error["message"])
        everything = {str(token): -100 for token in range(512)}
        error = self.refused(CHAT, {"messages": HELLO, **GREEDY, "logit_bias": everything})
        self.assertIn("logit_bias", error["message"])

    def test_seeds_have_64_bits(self):
        def text(seed):
            return self.server.post(CHAT, {"messages": HELLO, "max_tokens": 12, "temperature": 3,
                                           "seed": seed}).json()["choices"][0]["message"]["content"]
        for seed in (2 ** 63, 2 ** 64 - 1, -5):
            self.assertEqual(text(seed), text(seed))
        self.assertEqual(text(2 ** 64 - 5), text(-5))
        for seed in (2 ** 64, -2 ** 63 - 1, 1e300):
            message = self.refused(CHAT, {"messages": HELLO, "seed": seed})["message"]
            self.assertIn(f"between {-2 ** 63} and {2 ** 64 - 1}", message)

    def test_offsets_of_text_count_characters(self):
        prompt = "né 😀 漢字!"
        choice = self.server.post(COMPLETIONS, {
            "prompt": prompt, "echo": True, "logprobs": 0, "max_tokens": 40,
            "grammar": exactly("ö😀.")}).json()["choices"][0]
        self.assertEqual(choice["text"], prompt + "ö😀.")
        offsets = choice["logprobs"]["text_offset"]
        tokens = choice["logprobs"]["tokens"]
        self.assertTrue(any("\ufffd" in token for token in tokens), tokens)  # parts of characters
        self.assertEqual(offsets, sorted(offsets))
        for offset, token in zip(offsets, tokens):
            self.assertLessEqual(offset, len(choice["text"]))
            if "\ufffd" not in token and offset < len(choice["text"]):
                self.assertTrue(choice["text"][offset:].startswith(token), (offset, token))

    def test_the_cache_stays_within_its_plan(self):
        def owners():
            return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1])
                    for line in self.server.get("/metrics").body.decode().splitlines()
                    if line.startswith("strata:memory_bytes")}
        before = owners()
        for number in range(30):
            answer = self.server.post(COMPLETIONS, {"prompt": [number + 1] * 300, "max_tokens": 2})
            self.assertEqual(answer.status, 200, answer.body)
        self.assertGreater(self.server.metric("strata:prefix_cache_evictions_total"), 0)
        self.assertEqual(owners(), before)
        cache, = (value for name, value in before.items() if 'owner="cache"' in name)
        listed = self.server.get("/v1/admin/loaded-models").json()["data"][0]["memory"]
        self.assertEqual(listed["cache_bytes"], cache)


if __name__ == "__main__":
    main()
