#!/usr/bin/env python3
"""strata serve as clients of the OpenAI protocol meet it."""

import concurrent.futures
import copy
import json
import unittest

from serving import (CHAT, COMPLETIONS, GREEDY, HELLO, HERMES, STRICT, TAG, TEMPLATES, THINKER,
                     TIME, WEATHER, Served, Server, exactly, joined, published)
from support import INSTRUCT, REFERENCE, main, needs

class Dialect(Served):
    def chat(self, **more):
        answer = self.server.post(CHAT, {"messages": HELLO, **GREEDY, **more})
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()

    def complete(self, prompt, **more):
        answer = self.server.post(COMPLETIONS, {"prompt": prompt, **GREEDY, **more})
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()

    def both_ways(self, **more):
        """A message and its finish reason, which must be the same streamed and whole."""
        whole = self.chat(**more)["choices"][0]
        message = {key: value for key, value in whole["message"].items()
                   if key != "role" and value}
        streamed, reason = joined(self.server.events(CHAT, {"messages": HELLO, **GREEDY, **more}))
        # Ids of calls differ from answer to answer.
        whole_message = copy.deepcopy(message)
        ids = [call.pop("id") for each in (streamed, whole_message)
               for call in each.get("tool_calls", [])]
        self.assertEqual(len(set(ids)), len(ids))
        self.assertEqual((streamed, reason), (whole_message, whole["finish_reason"]))
        return message, whole["finish_reason"]


@needs(REFERENCE)
class Requests(Dialect):
    options = ("--context", 512, "--memory", "1G")  # bodies may be larger than texts

    def test_bodies_that_are_no_objects_get_400(self):
        for path in (CHAT, COMPLETIONS, "/tokenize", "/v1/admin/load-model"):
            for body in (b"{:", b"", b"[]", b"5", b'"x"', b"true", b"null", b'{"a":1}x',
                         b"[" * 100_000, b'{"a":' * 2000, b'{"messages":"\xff"}'):
                self.assertIn("JSON", self.refused(path, body)["message"], (path, body[:20]))

    def test_errors_name_their_field(self):
        for field, value in [
                ("messages", []), ("messages", "x"), ("messages", None), ("messages", [5]),
                ("messages", [{"content": "x"}]),
                ("messages", [{"role": "user", "content": [{"type": "image_url"}]}]),
                ("max_tokens", "x"), ("max_tokens", 1.5), ("max_tokens", -2),
                ("max_completion_tokens", True), ("temperature", "hot"), ("temperature", -1),
                ("top_p", 2), ("top_k", 0.5), ("n", 0), ("n", 1000), ("stream", 1),
                ("stream_options", 3), ("stop", 5), ("stop", [5]), ("stop", ["x"] * 65),
                ("seed", "x"), ("seed", 1e300), ("logit_bias", {"x": 1}),
                ("logit_bias", {"1": 101}), ("logit_bias", {"100000": 1}), ("logprobs", 5),
                ("top_logprobs", 3), ("top_logprobs", 21), ("frequency_penalty", []),
                ("tools", {}), ("tools", [{"type": "function"}]), ("tool_choice", "maybe"),
                ("tool_choice", "required"), ("response_format", "json"),
                ("response_format", {"type": "xml"}), ("response_format", {"type": "json_schema"}),
                ("grammar", 5), ("user", 5), ("priority", "x"), ("samplers", "x"),
                ("samplers", ["top_k", "x"]), ("samplers", [5]), ("repetition_penalty", 0),
                ("dry_sequence_breakers", [1]), ("functions", [{"name": "f"}]),
                ("chat_template_kwargs", []), ("reasoning_effort", 5), ("model", 5)]:
            error = self.refused(CHAT, {"messages": HELLO, **GREEDY, field: value})
            self.assertIn(field, error["message"], (field, value))
            self.assertIn(field, error["param"] or "", (field, value, error))
            self.assertEqual(error["type"], "invalid_request_error")

    def test_unknown_fields_are_ignored_and_named(self):
        body = self.chat(sparkle=True, sizzle=[1], n_discard=-1)
        self.assertEqual(len(body["warnings"]), 3)
        for name, warning in zip(("sparkle", "sizzle", "n_discard"), body["warnings"]):
            self.assertIn(name, warning)
        events = self.server.events(CHAT, {"messages": HELLO, **GREEDY, "sparkle": 1})
        self.assertIn("sparkle", events[0]["warnings"][0])
        self.assertNotIn("warnings", self.chat())

    def test_fields_without_effect_here_get_no_warning(self):
        self.assertNotIn("warnings", self.chat(
            metadata={"a": "b"}, store=False, service_tier="auto", user="me", functions=[],
            stream_options=None, logit_bias={}, tools=[], parallel_tool_calls=True))

    def test_tokens_that_the_model_lacks_are_invalid(self):
        for prompt in ([-1], [[-1]], [512], [1.5], [2 ** 40], [[]], [], ""):
            self.assertIn("prompt", self.refused(COMPLETIONS, {"prompt": prompt})["message"])
        self.assertIn("prompt", self.refused(COMPLETIONS, {})["message"])
        self.assertIn("prompt", self.refused(COMPLETIONS, {"prompt": {"a": 1}})["message"])

    def test_a_prompt_beyond_the_context_is_400_with_numbers(self):
        for path, body in ((COMPLETIONS, {"prompt": "x " * 2000}),
                           (COMPLETIONS, {"prompt": [5] * 512}),
                           (CHAT, {"messages": [{"role": "user", "content": "word " * 700}]}),
                           (CHAT, {"messages": [{"role": "user", "content": "word " * 90000}]})):
            for stream in (False, True):
                error = self.refused(path, {**body, "stream": stream})
                self.assertEqual(error["type"], "exceed_context_size_error")
                self.assertEqual(error["n_ctx"], 512)
                self.assertGreaterEqual(error["n_prompt_tokens"], 512)

    def test_an_answer_ends_where_the_context_does(self):
        body = self.complete([5] * 500, max_tokens=1000, logit_bias={"511": -100, "510": -100})
        self.assertEqual(body["choices"][0]["finish_reason"], "length")
        self.assertEqual(body["usage"]["total_tokens"], 512)

    def test_text_to_tokenize_has_a_limit(self):
        error = self.refused("/tokenize", {"content": "x" * ((4 << 20) + 1)})
        self.assertEqual(error["param"], "content")

    def test_a_prompt_starts_with_one_bos(self):
        prompt = self.server.post("/apply-template", {"messages": HELLO}).json()["prompt"]
        tokens = self.server.post("/tokenize", {"content": prompt}).json()["tokens"]
        self.assertEqual(tokens[0], 510)
        self.assertNotEqual(tokens[1], 510)
        self.assertEqual(self.chat()["usage"]["prompt_tokens"], len(tokens))
        back = self.server.post("/detokenize", {"tokens": tokens}).json()["content"]
        self.assertEqual(back, prompt)

    def test_unknown_paths_methods_and_models_say_so(self):
        for path in ("/v1/nothing", "/../etc/passwd", "/v1/..%2f..%2fx", "/slots/../x"):
            self.assertIn(self.server.get(path).status, (400, 404), path)
        self.assertEqual(self.server.get(CHAT).status, 405)
        error = self.refused(CHAT, {"messages": HELLO, "model": "absent"}, 404)
        self.assertEqual(error["param"], "model")
        self.assertEqual(self.server.get("/v1/models/absent").status, 404)
        listed = self.server.get("/v1/models").json()["data"]
        self.assertEqual([each["id"] for each in listed], ["llama"])
        self.assertEqual(self.server.get("/v1/models/llama").json()["max_model_len"], 512)


@needs(REFERENCE)
class Answers(Dialect):
    def test_text_and_reason_are_the_same_streamed_or_not(self):
        for more in ({}, {"max_tokens": 1}, {"max_tokens": 60}, {"stop": "e"},
                     {"temperature": 1, "seed": 5, "max_tokens": 40},
                     {"temperature": 5, "top_k": -1, "seed": 6, "max_tokens": 60},
                     {"grammar": exactly("done")}):
            message, reason = self.both_ways(**more)
            self.assertNotIn("\\u", json.dumps(message.get("content", ""))[:0])
            self.assertIn(reason, ("stop", "length"))

    def test_a_character_is_never_split_between_events(self):
        for count in range(1, 7):
            message, _ = self.both_ways(grammar=exactly("aé\U0001F60A"), max_tokens=count)
            self.assertNotIn("\ufffd", message.get("content", ""))
        self.assertEqual(self.both_ways(grammar=exactly("aé\U0001F60A"), max_tokens=20)[0],
                         {"content": "aé\U0001F60A"})

    def test_bytes_that_are_no_text_end_no_answer(self):
        halves = [token for token in range(512) if self.server.post(
            "/detokenize", {"tokens": [token]}).json()["content"] == "\ufffd"]
        self.assertGreaterEqual(len(halves), 128)
        for token in halves[::16]:
            message, reason = self.both_ways(logit_bias={str(token): 100}, max_tokens=6)
            self.assertEqual((set(message["content"]), reason), ({"\ufffd"}, "length"), token)

    def test_wild_sampling_ends_no_answer_and_no_server(self):
        for seed in range(8):
            body = self.chat(temperature=100, top_k=0, top_p=1, min_p=0, seed=seed, max_tokens=80)
            self.assertIn(body["choices"][0]["finish_reason"], ("stop", "length"))
        self.assertEqual(self.server.get("/health").status, 200)

    def test_other_names_of_sampling_mean_the_same(self):
        def said(**fields):
            return self.chat(temperature=0.8, seed=1, max_tokens=40, **fields)["choices"][0]
        for one, other in (
                ({"repetition_penalty": 1.7}, {"repeat_penalty": 1.7, "repeat_last_n": -1}),
                ({"samplers": ["top_k", "temperature"]}, {"samplers": "top_k;temperature"})):
            self.assertEqual(said(**one), said(**other))
            self.assertNotEqual(said(**one), said())
        self.assertIn("choices", self.chat(samplers=[], temperature=1))

    def test_stop_strings_cut_the_text_and_hold_nothing_else_back(self):
        says = {"grammar": exactly("The quick brown fox?"), "max_tokens": 64}
        for stop, text in ((["own fox"], "The quick br"), (["beta gamma", "foxes"], None),
                           (["\n"], None), (["?"], "The quick brown fox"), (["The"], ""),
                           (["quick brown", "qu"], "The "), ([""], None)):
            message, reason = self.both_ways(stop=stop, **says)
            self.assertEqual(message.get("content", ""),
                             "The quick brown fox?" if text is None else text, stop)
            self.assertEqual(reason, "stop")
            done = self.complete("x", stop=stop, **says)["choices"][0]
            self.assertEqual(done["text"], message.get("content", ""))
            pieces = self.server.events(COMPLETIONS, {"prompt": "x", "stop": stop, **says,
                                                      "temperature": 0})
            self.assertEqual("".join(piece["choices"][0]["text"] for piece in pieces), done["text"])

    def test_usage_is_a_last_event_without_choices(self):
        for path, body in ((CHAT, {"messages": HELLO}), (COMPLETIONS, {"prompt": "hello"})):
            body = {**body, **GREEDY}
            usage = self.server.post(path, body).json()["usage"]
            events = self.server.events(path, {**body, "stream_options": {"include_usage": True}})
            self.assertEqual(events[-1]["choices"], [])
            last = events[-1]["usage"]
            for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
                self.assertEqual(last[key], usage[key])
            self.assertIn("cached_tokens", last["prompt_tokens_details"])
            self.assertTrue(all(event["usage"] is None for event in events[:-1]))
            self.assertEqual(len({event["id"] for event in events}), 1)
            plain = self.server.events(path, body)
            self.assertTrue(all("usage" not in event for event in plain))
            self.assertTrue(all(len(event["choices"]) == 1 for event in plain))

    def test_choices_differ_by_their_stream_of_random_numbers(self):
        more = {"n": 3, "temperature": 3, "seed": 9, "max_tokens": 10}
        whole = self.chat(**more)
        texts = [choice["message"]["content"] for choice in whole["choices"]]
        self.assertEqual([choice["index"] for choice in whole["choices"]], [0, 1, 2])
        self.assertEqual(len(set(texts)), 3)
        events = self.server.events(CHAT, {"messages": HELLO, **more})
        for index, text in enumerate(texts):
            self.assertEqual(joined(events, index)[0].get("content", ""), text)
        self.assertEqual(self.chat(**{**more, "n": 1})["choices"][0]["message"]["content"],
                         texts[0])

    def test_several_prompts_are_answered_as_each_alone(self):
        prompts = ["one", "two three", [5, 6, 7], "one"]
        for more in ({}, {"echo": True}, {"n": 2, "echo": True}, {"echo": True, "logprobs": 1},
                     {"logprobs": 0}):
            choices = []
            for prompt in prompts:
                choices += self.complete(prompt, **more)["choices"]
            for index, choice in enumerate(choices):
                choice["index"] = index
            self.assertEqual(self.complete(["one", "two three", "one"], **more)["choices"][0],
                             choices[0])
            together = self.complete([[int(t) for t in self.tokens(p)] for p in prompts], **more)
            self.assertEqual(together["choices"], choices)
            pieces = self.server.events(COMPLETIONS, {
                "prompt": [self.tokens(p) for p in prompts], **GREEDY, **more})
            for index, choice in enumerate(choices):
                mine = [part for piece in pieces for part in piece["choices"]
                        if part["index"] == index]
                self.assertEqual("".join(part["text"] for part in mine), choice["text"])
                if choice["logprobs"] is not None:
                    for key, values in choice["logprobs"].items():
                        flat = sum((part["logprobs"][key] for part in mine if part["logprobs"]), [])
                        self.assertEqual(flat, values, key)

    def tokens(self, prompt):
        if isinstance(prompt, list):
            return prompt
        return self.server.post("/tokenize", {"content": prompt, "add_special": True}) \
            .json()["tokens"]

    def test_echo_gives_the_prompt_and_its_log_probabilities(self):
        choice = self.complete("hello", echo=True, logprobs=2, max_tokens=3)["choices"][0]
        count = len(self.tokens("hello"))
        logprobs = choice["logprobs"]
        self.assertTrue(choice["text"].startswith("hello"))
        self.assertEqual(len(logprobs["tokens"]), count + 3)
        self.assertIsNone(logprobs["token_logprobs"][0])
        self.assertTrue(all(value <= 0 for value in logprobs["token_logprobs"][1:]))
        self.assertEqual(logprobs["text_offset"][0], 0)
        alone = self.complete("hello", echo=True, logprobs=2, max_tokens=0)["choices"][0]
        self.assertEqual(alone["text"], "hello")
        self.assertEqual(alone["logprobs"]["token_logprobs"],
                         logprobs["token_logprobs"][:count])

    def test_log_probabilities_come_with_bytes_and_alternatives(self):
        content = self.chat(logprobs=True, top_logprobs=3)["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(content), 12)
        for token in content:
            self.assertEqual(len(token["top_logprobs"]), 3)
            self.assertEqual(token["top_logprobs"][0]["logprob"], token["logprob"])  # greedy
            self.assertIsInstance(token["bytes"], list)
        events = self.server.events(CHAT, {"messages": HELLO, **GREEDY, "logprobs": True,
                                           "top_logprobs": 3})
        streamed = [token for event in events for choice in event["choices"]
                    if choice["logprobs"] for token in choice["logprobs"]["content"]]
        self.assertEqual(streamed, content)

    def test_biases_forbid_and_force_tokens(self):
        forced = self.chat(logit_bias={"65": 100}, max_tokens=3)["choices"][0]
        self.assertEqual(len(set(forced["message"]["content"])), 1)
        first = self.complete("hello", max_tokens=1, logprobs=0)["choices"][0]["logprobs"]
        token = self.server.post("/tokenize", {"content": first["tokens"][0]}).json()["tokens"][0]
        other = self.complete("hello", max_tokens=1, logprobs=0, logit_bias={str(token): -100})
        self.assertNotEqual(other["choices"][0]["logprobs"]["tokens"], first["tokens"])

    def test_greedy_answers_are_the_same_alone_and_among_others(self):
        prompts = [f"{word} " * count for count, word in enumerate(
            ("alpha", "beta", "gamma", "delta", "one", "two", "three", "four"), 1)]
        def ask(prompt):
            return self.complete(prompt, max_tokens=24, logprobs=3, cache_salt=prompt)["choices"]
        alone = [ask(prompt) for prompt in prompts]
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            together = list(pool.map(ask, prompts * 3))
        self.assertEqual(together, alone * 3)

    def test_a_second_turn_comes_from_the_cache(self):
        messages = [{"role": "user", "content": "many words " * 60}]
        first = self.chat(messages=messages)
        messages += [first["choices"][0]["message"], {"role": "user", "content": "more"}]
        second = self.chat(messages=messages)["usage"]
        cached = second["prompt_tokens_details"]["cached_tokens"]
        self.assertGreater(cached, first["usage"]["prompt_tokens"] // 2)
        salted = self.chat(messages=messages, cache_salt="other")["usage"]
        self.assertEqual(salted["prompt_tokens_details"]["cached_tokens"], 0)

    def test_a_miss_names_the_first_token_that_differs(self):
        head = "shared words " * 20
        self.complete(head + "alpha " * 30)
        usage = self.complete(head + "omega " * 30)["usage"]["prompt_tokens_details"]
        self.assertGreater(usage["cached_tokens"], 0)
        self.assertGreaterEqual(usage["first_difference"], usage["cached_tokens"])
        self.assertEqual(self.server.slots()[-1]["first_difference"], usage["first_difference"])

    def test_grammars_and_schemas_hold_the_answer(self):
        schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]},
                                                   "b": {"type": "boolean"}},
                  "required": ["a", "b"], "additionalProperties": False}
        for form in ({"type": "json_schema", "json_schema": {"name": "s", "schema": schema}},
                     {"type": "json_object", "schema": schema}):
            message, reason = self.both_ways(response_format=form, max_tokens=200)
            value = json.loads(message["content"])
            self.assertEqual(set(value), {"a", "b"})
            self.assertEqual(reason, "stop")
        content = self.both_ways(response_format={"type": "json_object"}, max_tokens=30)[0]
        self.assertTrue(content["content"].lstrip().startswith("{"))
        self.assertEqual(self.both_ways(response_format={"type": "text"})[1], "length")

    def test_bad_grammars_and_schemas_are_400(self):
        for grammar in ("root ::= (", "nonsense", 'root ::= "a"{5,0}', "root ::= root \"a\"",
                        "root ::= missing", 'root ::= "' + "a" * 2_000_000 + '"'):
            self.refused(CHAT, {"messages": HELLO, "grammar": grammar})
        for schema in ({"properties": {"foo": "bar"}}, {"type": "nothing"}, 5,
                       {"type": "string", "pattern": "(" * 5000},
                       {"type": "string", "pattern": "a{3,2}"}, {"not": {}}):
            form = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}
            self.refused(CHAT, {"messages": HELLO, "response_format": form})

    def test_a_request_of_50_kilobytes_is_one_request(self):
        answer = self.server.post(CHAT, {"messages": HELLO, **GREEDY, "pad": "x" * 50_000})
        self.assertEqual(answer.status, 200)


@needs(REFERENCE)
class Tools(Dialect):
    template = HERMES
    tokens = {TAG: "<tool_call>"}

    def test_calls_are_the_same_streamed_or_not(self):
        call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome", "days": 3}}\n' \
               "</tool_call>"
        for text, calls, content in (
                (call, 1, None), ("Let me see. " + call, 1, "Let me see."),
                (call + "\n" + call, 2, None), ("no <tool> at all", 0, "no <tool> at all"),
                ("<tool_call>\nnot json\n</tool_call>", 0, None)):
            message, reason = self.both_ways(tools=[WEATHER, TIME], grammar=exactly(text),
                                             max_tokens=200)
            self.assertEqual(len(message.get("tool_calls", [])), calls, text)
            self.assertEqual(reason, "tool_calls" if calls else "stop")
            if content is not None:
                self.assertEqual(message["content"].strip(), content)
            for one in message.get("tool_calls", []):
                self.assertEqual(json.loads(one["function"]["arguments"]),
                                 {"city": "Rome", "days": 3})
                self.assertTrue(one["id"])

    def test_calls_cut_by_the_limit_are_the_same_streamed_or_not(self):
        call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome", "days": 3}}\n' \
               "</tool_call>"
        for count in range(5, 60, 6):
            _, reason = self.both_ways(tools=[WEATHER], grammar=exactly(call), max_tokens=count)
            self.assertEqual(reason, "length")

    def test_arguments_that_are_a_list_stay_text(self):
        text = '<tool_call>\n{"name": "weather", "arguments": [1, 2]}\n</tool_call>'
        answer = self.server.post(CHAT, {"messages": HELLO, **GREEDY, "tools": [WEATHER],
                                         "grammar": exactly(text), "max_tokens": 200})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertIn("[1, 2]", answer.json()["choices"][0]["message"]["content"])

    def test_required_and_named_calls_come_and_fit_their_schema(self):
        for choice, names in (("required", {"weather", "time"}),
                              ({"type": "function", "function": {"name": "weather"}}, {"weather"}),
                              ({"type": "function", "function": {"name": "time"}}, {"time"})):
            message, reason = self.both_ways(tools=[WEATHER, TIME], tool_choice=choice,
                                             max_tokens=200, parallel_tool_calls=False)
            self.assertEqual(reason, "tool_calls")
            self.assertEqual(len(message["tool_calls"]), 1)
            function = message["tool_calls"][0]["function"]
            self.assertIn(function["name"], names)
            arguments = json.loads(function["arguments"])
            if function["name"] == "weather":
                self.assertIn(arguments["city"], ("Paris", "Rome"))
                self.assertIn(arguments["days"], range(1, 10))

    def test_no_call_comes_where_none_may(self):
        prompts = [self.chat(tools=[WEATHER], tool_choice=choice)["usage"]["prompt_tokens"]
                   for choice in ("auto", "none")]
        self.assertGreater(prompts[0], prompts[1])  # the template does not see the tools
        self.assertEqual(self.chat(tools=[])["usage"]["prompt_tokens"], prompts[1])
        text = '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>'
        message, reason = self.both_ways(tools=[TIME], tool_choice="none", grammar=exactly(text),
                                         max_tokens=200)
        self.assertEqual((message, reason), ({"content": text}, "stop"))

    def test_calls_that_start_freely_fit_their_schema(self):
        # Wherever it may come, the tag is likelier than anything else.
        body = self.chat(tools=[WEATHER], max_tokens=300, logit_bias={str(TAG): 100},
                         temperature=2, seed=3)
        calls = body["choices"][0]["message"]["tool_calls"]
        self.assertGreater(len(calls), 2)
        for call in calls[:-1]:  # the limit may have cut the last
            self.assertEqual(call["function"]["name"], "weather")
            arguments = json.loads(call["function"]["arguments"])
            self.assertIn(arguments["city"], ("Paris", "Rome"))
            self.assertIn(arguments["days"], range(1, 10))

    def test_schemas_that_cannot_be_held_say_so_unless_they_are_strict(self):
        def tools(strict, **schema):
            return [{"type": "function", "function": {"name": "odd", "strict": strict,
                "parameters": {"type": "object", "properties": {"a": schema}}}}]
        for schema, warning in (
                ({"type": "string", "pattern": "(?<=x)y"}, "#/properties/a/pattern"),
                ({"not": {}}, "the tool odd are not held to its schema")):
            for choice in ("auto", "required"):
                body = self.chat(tools=tools(False, **schema), tool_choice=choice)
                self.assertEqual(len(body["warnings"]), 1)
                self.assertIn(warning, body["warnings"][0])
                error = self.refused(CHAT, {"messages": HELLO, "tools": tools(True, **schema),
                                            "tool_choice": choice})
                self.assertEqual(error["param"], "tools")
                self.assertIn("odd, #/properties/a/", error["message"])
        form = {"schema": {"type": "string", "format": "path"}}
        body = self.chat(response_format={"type": "json_schema", "json_schema": form})
        self.assertIn("#/format", body["warnings"][0])
        form["strict"] = True
        error = self.refused(CHAT, {"messages": HELLO, "response_format": {
            "type": "json_schema", "json_schema": form}})
        self.assertIn("`response_format`: the schema, #/format", error["message"])

    def test_a_broken_call_is_one_error_and_the_next_request_works(self):
        broken = '<tool_call>\n{"name": "weather", "arguments": {"city": ]}}\n</tool_call>'
        body = {"messages": HELLO, **GREEDY, "tools": [WEATHER], "grammar": exactly(broken),
                "max_tokens": 200}
        self.assertEqual(self.refused(CHAT, body, 500)["type"], "tool_call_error")
        # Clients repeat what fails with 5xx, unless they are told not to.
        self.assertEqual(self.server.post(CHAT, body).headers["x-should-retry"], "false")
        text = self.server.post(CHAT, {**body, "stream": True}).body.decode()
        self.assertEqual(text.count('"error"'), 1)
        self.assertRegex(text, r"\ndata: {\"error\".*\n\ndata: \[DONE\]\n\n$")
        self.chat()
        self.server.wait_for(lambda: not self.server.slots("queued", "prompt", "generating"))

    def test_a_schema_leaves_calls_possible(self):
        form = {"type": "json_schema", "json_schema": {"schema": {"enum": ["a"]}}}
        called = self.chat(tools=[TIME], response_format=form, max_tokens=60,
                           logit_bias={str(TAG): 100})["choices"][0]
        self.assertEqual(called["message"]["tool_calls"][0]["function"]["name"], "time")
        said = self.chat(tools=[TIME], response_format=form, max_tokens=60,
                         logit_bias={str(TAG): -100, "27": -100, "60": -100})["choices"][0]
        self.assertEqual(json.loads(said["message"]["content"]), "a")

    def test_results_of_calls_come_back(self):
        call = {"id": "c1", "type": "function",
                "function": {"name": "time", "arguments": "{}"}}
        for content in (None, ""):
            self.chat(tools=[TIME], messages=HELLO + [
                {"role": "assistant", "content": content, "tool_calls": [call],
                 "reasoning_content": "hm"},
                {"role": "tool", "tool_call_id": "c1", "content": [
                    {"type": "text", "text": "noon"}]}])


class ToolStyle:
    """What holds for every way to write calls; `written` is one of WEATHER in that way."""

    tokens = None
    options = ("--context", 4096, "--memory", "512M")

    def test_required_and_named_calls_come_and_fit_their_schema(self):
        for choice, names in (("required", {"weather", "time"}),
                              ({"type": "function", "function": {"name": "weather"}}, {"weather"})):
            message, reason = self.both_ways(tools=[WEATHER, TIME], tool_choice=choice,
                                             max_tokens=300, parallel_tool_calls=False)
            self.assertEqual(reason, "tool_calls")
            call, = message["tool_calls"]
            self.assertIn(call["function"]["name"], names)
            arguments = json.loads(call["function"]["arguments"])
            if call["function"]["name"] == "weather":
                self.assertIn(arguments["city"], ("Paris", "Rome"))
                self.assertIn(arguments["days"], range(1, 10))

    def test_calls_are_the_same_streamed_or_not(self):
        message, reason = self.both_ways(tools=[WEATHER, TIME], grammar=exactly(self.written),
                                         max_tokens=300)
        self.assertEqual(reason, "tool_calls")
        call, = message["tool_calls"]
        self.assertEqual(call["function"]["name"], "weather")
        self.assertEqual(json.loads(call["function"]["arguments"]), {"city": "Rome", "days": 3})
        self.assertFalse(message.get("content"))
        for count in range(5, 40, 7):
            self.assertEqual(self.both_ways(tools=[WEATHER], grammar=exactly(self.written),
                                            max_tokens=count)[1], "length")

    def test_results_of_calls_come_back(self):
        self.chat(tools=[WEATHER], messages=HELLO + [
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "c1", "type": "function", "function": {
                    "name": "weather", "arguments": '{"city": "Rome", "days": 3}'}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "sunny"}])


@needs(TEMPLATES)
class LlamaTools(ToolStyle, Dialect):
    template = published("meta-llama-Llama-3.1-8B-Instruct")
    written = '{"name": "weather", "parameters": {"city": "Rome", "days": 3}}'


@needs(TEMPLATES)
class TaggedTools(ToolStyle, Dialect):
    template = published("Qwen3-Coder")
    written = ("<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n"
               "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>")


@needs(REFERENCE)
class Thinking(Dialect):
    template = THINKER

    def test_reasoning_is_told_apart_streamed_or_not(self):
        for text, message in (("so\n</think>\n\nYes.", {"reasoning_content": "so",
                                                        "content": "Yes."}),
                              ("never done", {"reasoning_content": "never done"}),
                              ("</think>Yes", {"content": "Yes"})):
            got, reason = self.both_ways(grammar=exactly(text), max_tokens=100)
            self.assertEqual({key: value.strip() for key, value in got.items()}, message)
            self.assertEqual(reason, "stop")

    def test_thinking_can_be_switched_off(self):
        says = {"grammar": exactly("Yes."), "max_tokens": 20}
        for off in ({"think": False}, {"reasoning_effort": "none"},
                    {"chat_template_kwargs": {"enable_thinking": False}}):
            self.assertEqual(self.both_ways(**says, **off)[0], {"content": "Yes."}, off)
        for on in ({}, {"think": True}, {"reasoning_effort": "low"},
                   {"chat_template_kwargs": {"enable_thinking": True}}):
            self.assertEqual(self.both_ways(**says, **on)[0], {"reasoning_content": "Yes."}, on)

    def test_a_schema_holds_from_the_first_token_without_thinking_and_behind_it_with(self):
        form = {"type": "json_schema", "json_schema": {"schema": {"enum": ["a", "b"]}}}
        content = self.both_ways(response_format=form, think=False, max_tokens=50)[0]
        self.assertIn(json.loads(content["content"]), ("a", "b"))
        ends = {"logit_bias": {str(token): 60 for token in self.server.post(
            "/tokenize", {"content": "</think>"}).json()["tokens"]}}
        message, _ = self.both_ways(response_format=form, max_tokens=200, **ends)
        if "content" in message:
            self.assertIn(json.loads(message["content"]), ("a", "b"))

    def test_a_stop_string_may_hide_the_end_of_thinking(self):
        message, _ = self.both_ways(grammar=exactly("so</think>Yes."), stop=["k>Y"], max_tokens=50)
        self.assertEqual(message, {"reasoning_content": "so</thin"})


@needs(REFERENCE)
class Templates(Dialect):
    template = STRICT

    def test_what_the_template_refuses_is_the_clients_error(self):
        error = self.refused(CHAT, {"messages": [{"role": "system", "content": "be"}] + HELLO})
        self.assertIn("the first turn is the user's", error["message"])
        self.assertEqual(error["type"], "invalid_request_error")


@needs(INSTRUCT)
class Instruct(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(INSTRUCT, "--context", 4096, "--memory", "1G")
        cls.addClassCleanup(cls.server.__exit__)

    def chat(self, messages, **more):
        return self.server.post(CHAT, {"messages": messages, "temperature": 0, **more}).json()

    def test_a_second_turn_of_a_long_conversation_is_cached(self):
        text = "".join(f"Line {i}: the {i % 7}th value is {i * 37 % 101}.\n" for i in range(75))
        messages = [{"role": "user", "content": text + "Summarize."}]
        first = self.chat(messages, max_tokens=8)
        self.assertGreater(first["usage"]["prompt_tokens"], 1000)
        messages += [first["choices"][0]["message"], {"role": "user", "content": "Go on."}]
        usage = self.chat(messages, max_tokens=4)["usage"]
        share = usage["prompt_tokens_details"]["cached_tokens"] / usage["prompt_tokens"]
        self.assertGreaterEqual(share, 0.98)

    def test_answers_are_those_of_both_dialects(self):
        openai = self.chat(HELLO, max_tokens=16)["choices"][0]
        ollama = self.server.post("/api/chat", {
            "messages": HELLO, "stream": False,
            "options": {"temperature": 0, "num_predict": 16}}).json()
        self.assertEqual(ollama["message"]["content"], openai["message"]["content"])
        self.assertEqual(ollama["done_reason"], openai["finish_reason"])


if __name__ == "__main__":
    main()
