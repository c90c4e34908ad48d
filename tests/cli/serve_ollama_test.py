#!/usr/bin/env python3
"""strata serve as clients of the Ollama protocol meet it."""

import json
import unittest

from serving import CHAT, HELLO, HERMES, THINKER, TIME, WEATHER, Served, exactly
from support import REFERENCE, main, needs

GREEDY = {"temperature": 0, "num_predict": 12}
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome", "days": 3}}\n</tool_call>'


class Dialect(Served):
    def whole(self, path="/api/chat", **body):
        body = {"options": GREEDY, "stream": False,
                **({"messages": HELLO} if path == "/api/chat" else {}), **body}
        answer = self.server.post(path, body)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()

    def both_ways(self, **body):
        """The message, which must be the same streamed and whole."""
        whole = self.whole(**body)
        objects = self.server.events("/api/chat", {"messages": HELLO, "options": GREEDY, **body})
        message = {}
        for each in objects:
            for key, value in each["message"].items():
                if key != "role":
                    message[key] = message.get(key, [] if key == "tool_calls" else "") + value
        self.assertEqual([each["done"] for each in objects], [False] * (len(objects) - 1) + [True])
        self.assertEqual(message, {k: v for k, v in whole["message"].items() if k != "role"})
        self.assertEqual(objects[-1]["done_reason"], whole["done_reason"])
        return message, whole["done_reason"]


@needs(REFERENCE)
class Protocol(Dialect):
    def test_clients_find_what_they_look_for(self):
        self.assertEqual(self.server.get("/").body, b"Ollama is running")
        self.assertEqual(self.server.ask("HEAD", "/").status, 200)
        self.assertTrue(self.server.get("/api/version").json()["version"])
        model = self.server.get("/api/tags").json()["models"][0]
        self.assertEqual(model["name"], "llama")
        self.assertRegex(model["digest"], r"^[0-9a-f]{64}$")
        self.assertEqual(model["details"]["format"], "gguf")
        self.assertEqual(self.server.get("/api/tags").json()["models"][0], model)
        loaded = self.server.get("/api/ps").json()["models"][0]
        self.assertEqual(loaded["digest"], model["digest"])
        self.assertGreater(loaded["size"], 0)
        for name in ("llama", "llama:latest", "LLAMA"):
            shown = self.server.post("/api/show", {"model": name}).json()
            self.assertIn("completion", shown["capabilities"])
            self.assertIn("general.architecture", shown["model_info"])
        self.refused("/api/show", {"model": "absent"}, 404)

    def test_what_is_not_there_is_said_as_clients_read_it(self):
        for method, path in (("POST", "/api/embed"), ("GET", "/api/chat")):
            answer = self.server.ask(method, path)
            self.assertIn(answer.status, (404, 405))
            self.assertIsInstance(answer.json()["error"], str)

    def test_what_the_server_refuses_itself_is_said_so_too(self):
        for headers, status in (({"Host": "evil.example"}, 403), ({"Content-Length": "x"}, 400),
                                ({"Content-Length": str(1 << 40)}, 413),
                                ({"X-Long": "x" * 100_000}, 431)):
            said = {path: self.server.ask("POST", path, headers=headers)
                    for path in ("/api/chat", "/v1/chat/completions")}
            self.assertEqual({answer.status for answer in said.values()}, {status}, headers)
            self.assertIsInstance(said["/api/chat"].json()["error"], str)
            self.assertIn("message", said["/v1/chat/completions"].json()["error"])

    def test_pulling_what_is_there_succeeds_and_nothing_else_does(self):
        for stream in (True, False):
            answer = self.server.post("/api/pull", {"model": "llama", "stream": stream})
            self.assertEqual(json.loads(answer.body.splitlines()[-1])["status"], "success")
            self.assertIn("strata pull", self.refused("/api/pull", {"model": "absent",
                                                                    "stream": stream}, 404))

    def test_timings_are_in_nanoseconds_and_add_up(self):
        for path, body in (("/api/chat", {}), ("/api/generate", {"prompt": "hello"})):
            done = self.whole(path, **body)
            self.assertTrue(done["done"])
            self.assertEqual(done["eval_count"], 12)
            self.assertGreater(done["prompt_eval_count"], 0)
            for key in ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration"):
                self.assertIsInstance(done[key], int)
                self.assertGreaterEqual(done["total_duration"], done[key])
            self.assertRegex(done["created_at"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z$")

    def test_errors_name_their_field(self):
        for field, value in [("messages", 5), ("messages", [5]), ("stream", 1), ("tools", 5),
                             ("options", []), ("format", "xml"), ("format", 5), ("think", 5),
                             ("keep_alive", "soon"), ("keep_alive", []), ("template", "x"),
                             ("model", 5)]:
            self.assertIn(field, self.refused("/api/chat", {"messages": HELLO, field: value}))
        for field, value in [("temperature", "x"), ("num_predict", 0.5), ("stop", 5),
                             ("top_k", -1.5), ("num_ctx", "big"), ("seed", "x")]:
            self.assertIn(f"options.{field}", self.refused(
                "/api/chat", {"messages": HELLO, "options": {field: value}}))
        for field, value in [("mirostat", 1), ("samplers", ["top_k"])]:
            error = self.refused("/api/chat", {"messages": HELLO,
                                               "options": {**GREEDY, field: value}})
            self.assertIn("`options." + ("temperature" if field == "samplers" else field), error)
        for field, value in [("prompt", 5), ("suffix", "x"), ("images", ["x"]), ("raw", "x")]:
            self.assertIn(field, self.refused("/api/generate", {"prompt": "x", field: value}))
        for body in (b"{:", b"[]", b"5", b"true"):
            self.assertIn("JSON", self.refused("/api/chat", body))
        self.assertIn("absent", self.refused("/api/chat", {"model": "absent", "messages": HELLO},
                                             404))

    def test_what_has_no_effect_is_named(self):
        done = self.whole(sparkle=1, options={**GREEDY, "num_thread": 4, "glow": 2})
        for name in ("sparkle", "options.num_thread", "options.glow"):
            self.assertTrue(any(name in warning for warning in done["warnings"]), name)
        last = self.server.events("/api/chat", {"messages": HELLO, "options": GREEDY, "glow": 1})
        self.assertIn("glow", last[-1]["warnings"][0])

    def test_what_has_no_effect_is_named_without_an_answer_too(self):
        for path, body in (("/api/chat", {}), ("/api/generate", {}),
                           ("/api/generate", {"keep_alive": 0}), ("/api/show", {}),
                           ("/api/pull", {"insecure": True, "stream": False})):
            answer = self.server.post(path, {"model": "llama", **body, "sparkle": 1}).json()
            self.assertIn("`sparkle` is unknown", answer["warnings"][0], path)
            self.assertEqual(len(answer["warnings"]), 1, path)
            answer = self.server.post(path, {"model": "llama", **body}).json()
            self.assertNotIn("warnings", answer, path)

    def test_a_prompt_beyond_the_context_is_400_with_numbers(self):
        answer = self.server.post("/api/generate", {"prompt": "word " * 700})
        self.assertEqual(answer.status, 400)
        self.assertEqual(answer.json()["n_ctx"], 512)
        self.assertGreater(answer.json()["n_prompt_tokens"], 512)

    def test_text_is_the_same_streamed_or_not(self):
        for options in (GREEDY, {**GREEDY, "stop": ["e"]},
                        {"temperature": 2, "top_k": -1, "seed": 3, "num_predict": 40}):
            self.both_ways(options=options)

    def test_greedy_answers_are_those_of_the_other_dialect(self):
        other = self.server.post(CHAT, {"messages": HELLO, "temperature": 0, "max_tokens": 24})
        other = other.json()["choices"][0]["message"]["content"]
        done = self.whole(options={"temperature": 0, "num_predict": 24})
        self.assertEqual(done["message"]["content"], other)
        generated = self.whole("/api/generate", prompt="hello",
                               options={"temperature": 0, "num_predict": 24})
        self.assertEqual(generated["response"], other)

    def test_raw_prompts_meet_no_template(self):
        raw = self.whole("/api/generate", prompt="hello", raw=True)
        tokens = self.server.post("/tokenize", {"content": "hello", "add_special": True}).json()
        self.assertEqual(raw["prompt_eval_count"], len(tokens["tokens"]))
        full = self.whole("/api/generate", prompt="hello", system="be brief")
        self.assertGreater(full["prompt_eval_count"], raw["prompt_eval_count"])

    def test_without_a_prompt_a_model_is_loaded_or_unloaded(self):
        for path in ("/api/generate", "/api/chat"):
            self.assertEqual(self.server.post(path, {"model": "llama", "keep_alive": 0})
                             .json()["done_reason"], "unload")
            self.server.wait_for(lambda: not self.server.get("/api/ps").json()["models"])
            self.assertEqual(self.server.post(path, {"model": "llama"}).json()["done_reason"],
                             "load")
            self.assertEqual(len(self.server.get("/api/ps").json()["models"]), 1)
            self.assertEqual(self.server.post(path, {"model": "llama", "messages": []})
                             .json()["done_reason"], "load")

    def test_a_schema_holds_the_answer(self):
        schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"],
                  "additionalProperties": False}
        message, reason = self.both_ways(format=schema, options={**GREEDY, "num_predict": 100})
        self.assertEqual(set(json.loads(message["content"])), {"a"})
        self.assertEqual(reason, "stop")
        self.assertTrue(self.both_ways(format="json")[0]["content"].startswith("{"))


@needs(REFERENCE)
class Tools(Dialect):
    template = HERMES

    def test_liberal_messages_are_read(self):
        done = self.whole(tools=[WEATHER, TIME], messages=[
            {"role": "system", "content": [{"type": "text", "text": "be"}]},
            {"role": "user", "content": [{"type": "text", "text": "when?"}]},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c", "type": "function",
                 "function": {"name": "time", "arguments": "{\"zone\": \"UTC\"}"}}]},
            {"role": "tool", "content": "noon", "tool_call_id": "c"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"function": {"name": "time", "arguments": {}}}]},
            {"role": "tool", "content": "one", "tool_name": "time"}])
        self.assertTrue(done["done"])

    def test_calls_are_the_same_streamed_or_not(self):
        bias = {"options": {"temperature": 0, "num_predict": 200}}
        required = self.server.post(CHAT, {
            "messages": HELLO, "temperature": 0, "tools": [WEATHER], "tool_choice": "required",
            "parallel_tool_calls": False, "max_tokens": 200}).json()
        call = required["choices"][0]["message"]["tool_calls"][0]["function"]
        message, reason = self.both_ways(tools=[WEATHER], grammar=exactly(CALL), **bias)
        self.assertEqual(reason, "stop")
        self.assertEqual(call["name"], "weather")
        self.assertEqual(message["tool_calls"][0]["function"],
                         {"name": "weather", "arguments": {"city": "Rome", "days": 3}})


    def test_a_call_that_is_cut_is_none(self):
        for count in range(5, 80, 5):
            whole = self.whole(tools=[WEATHER], grammar=exactly(CALL),
                               options={"temperature": 0, "num_predict": count})
            message, reason = self.both_ways(tools=[WEATHER], grammar=exactly(CALL),
                                             options={"temperature": 0, "num_predict": count})
            self.assertEqual(whole["done_reason"], reason)
            for call in message.get("tool_calls", []):
                self.assertEqual(call["function"]["arguments"], {"city": "Rome", "days": 3})
        two = {"tools": [WEATHER], "grammar": exactly(f"{CALL}\n{CALL}")}
        stopped = self.both_ways(**two, options={"temperature": 0, "num_predict": 200,
                                                 "stop": ["days"]})
        self.assertEqual(stopped, ({"content": ""}, "stop"))

    def test_arguments_are_objects_whatever_they_hold(self):
        deep = '{"a": ' * 40 + "1" + "}" * 40
        for text, arguments in ((deep, json.loads(deep)), ('{"a": "\\ud800"}', {"a": "\ufffd"}),
                                ('{"a": 18446744073709551615}', {"a": 2 ** 64 - 1})):
            call = f'<tool_call>{{"name": "time", "arguments": {text}}}</tool_call>'
            message, _ = self.both_ways(tools=[TIME], grammar=exactly(call),
                                        options={"temperature": 0, "num_predict": 350})
            self.assertEqual(message["tool_calls"],
                             [{"function": {"name": "time", "arguments": arguments}}])
            done = self.whole(tools=[TIME], messages=HELLO + [
                {"role": "assistant", "content": "", "tool_calls": message["tool_calls"]},
                {"role": "tool", "content": "x", "tool_name": "time"}],
                options={"temperature": 0, "num_predict": 2})
            self.assertTrue(done["done"])


@needs(REFERENCE)
class Thinking(Dialect):
    template = THINKER

    def test_thinking_is_told_apart_and_switched(self):
        says = {"grammar": exactly("so</think>Yes."), "options": {**GREEDY, "num_predict": 50}}
        self.assertEqual(self.both_ways(**says)[0], {"thinking": "so", "content": "Yes."})
        self.assertEqual(self.both_ways(**says, think="high")[0],
                         {"thinking": "so", "content": "Yes."})
        off = self.both_ways(think=False, grammar=exactly("Yes."), options=says["options"])[0]
        self.assertEqual(off, {"content": "Yes."})
        generated = self.whole("/api/generate", prompt="x", **says)
        self.assertEqual((generated["thinking"], generated["response"]), ("so", "Yes."))
        schema = self.both_ways(think=False, format={"enum": ["a"]}, options=says["options"])[0]
        self.assertEqual(json.loads(schema["content"]), "a")
        shown = self.server.post("/api/show", {"model": "llama"}).json()
        self.assertIn("thinking", shown["capabilities"])


if __name__ == "__main__":
    main()
