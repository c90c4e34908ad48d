#!/usr/bin/env python3
"""strata serve: tools and constrained answers, in the forms that clients of others send them."""

import json
import unittest

from serve_openai_test import Dialect
from serving import CHAT, COMPLETIONS, GREEDY, HELLO, HERMES, TIME, WEATHER, exactly
from support import REFERENCE, main, needs

CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome", "days": 3}}\n</tool_call>'


def bounded(most):
    return {"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {"id": {"type": "integer", "minimum": 0, "maximum": most}},
        "required": ["id"]}}}


def nested(depth):
    return '{"a": ' * depth + "1" + "}" * depth


@needs(REFERENCE)
class Calls(Dialect):
    template = HERMES
    options = ("--context", 2048, "--memory", "512M")

    def test_integers_of_64_bits_are_rendered_as_they_are(self):
        for most in (2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1):
            tool = bounded(most)
            prompt = self.server.post("/apply-template", {"messages": HELLO, "tools": [tool]})
            self.assertIn(f'"maximum": {most}}}', prompt.json()["prompt"])
            self.chat(tools=[tool])
            done = self.server.post("/api/chat", {"messages": HELLO, "tools": [tool],
                                                  "stream": False, "options": {"num_predict": 2}})
            self.assertEqual(done.status, 200, done.body)
            turns = HELLO + [{"role": "assistant", "tool_calls": [{
                "id": "a", "type": "function",
                "function": {"name": "f", "arguments": f'{{"id": {most}}}'}}]},
                {"role": "tool", "tool_call_id": "a", "content": "x"}]
            self.chat(messages=turns)
            prompt = self.server.post("/apply-template", {"messages": turns}).json()["prompt"]
            self.assertIn(f'{{"id": {most}}}', prompt)

    def test_larger_ones_are_rendered_too(self):
        for most in (2 ** 64, -2 ** 63 - 1, 10 ** 40):
            self.chat(tools=[bounded(most)])

    def test_a_stop_string_inside_a_call_is_why_it_ends(self):
        for stop, reason, calls in (("days", "stop", 1), ("Rome", "stop", 1), ("}}", "stop", 1),
                                    ("arguments", "stop", 0), ("</tool_call>", "tool_calls", 1)):
            message, why = self.both_ways(tools=[WEATHER], grammar=exactly(CALL), stop=[stop],
                                          max_tokens=200)
            self.assertEqual((why, len(message.get("tool_calls", []))), (reason, calls), stop)
        for text, reason in ((f"{CALL}\n{CALL}#", "tool_calls"),
                             (f"{CALL}\n{CALL[:-20]}#", "stop")):
            message, why = self.both_ways(tools=[WEATHER], grammar=exactly(text), stop=["#"],
                                          max_tokens=300)
            self.assertEqual((why, len(message["tool_calls"])), (reason, 2))

    def test_calls_are_taken_back_as_they_were_made(self):
        for arguments in (nested(32), nested(33), nested(60), '{"a": "\\ud800"}',
                          '{"a": 18446744073709551615}'):
            text = f'<tool_call>{{"name":"time","arguments":{arguments}}}</tool_call>'
            answer = self.chat(tools=[TIME], grammar=exactly(text), max_tokens=800)["choices"][0]
            self.assertEqual(answer["finish_reason"], "tool_calls")
            message = answer["message"]
            call = message["tool_calls"][0]
            self.assertEqual(call["function"]["arguments"], arguments)
            self.chat(tools=[TIME], messages=HELLO + [
                message, {"role": "tool", "tool_call_id": call["id"], "content": "x"}])

    def test_the_choice_of_tools_has_many_forms(self):
        def allowed(mode, *names):
            return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [
                {"type": "function", "function": {"name": name}} for name in names]}}
        both = {"weather", "time"}
        for choice, names in (("any", both), ({"type": "required"}, both),
                              (allowed("required", "time"), {"time"}),
                              (allowed("required", "weather"), {"weather"}),
                              (allowed("required", "time", "weather"), both)):
            message, reason = self.both_ways(tools=[WEATHER, TIME], tool_choice=choice,
                                             max_tokens=200, parallel_tool_calls=False)
            self.assertEqual(reason, "tool_calls")
            self.assertIn(message["tool_calls"][0]["function"]["name"], names)
        plain = self.chat(tools=[WEATHER, TIME])
        for choice in ({"type": "auto"}, allowed("auto", "time")):
            body = self.chat(tools=[WEATHER, TIME], tool_choice=choice)
            self.assertEqual(body["usage"]["prompt_tokens"], plain["usage"]["prompt_tokens"])
        none = self.chat(tools=[WEATHER, TIME], tool_choice={"type": "none"})
        self.assertLess(none["usage"]["prompt_tokens"], plain["usage"]["prompt_tokens"])
        error = self.refused(CHAT, {"messages": HELLO, "tools": [TIME],
                                    "tool_choice": allowed("auto", "weather")})
        self.assertEqual(error["param"], "tool_choice")


@needs(REFERENCE)
class Guides(Dialect):
    SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"],
              "additionalProperties": False}

    def texts(self, **guide):
        """What a chat and a completion say, held so."""
        message, reason = self.both_ways(**guide, max_tokens=100)
        choice = self.complete("x", **guide, max_tokens=100)["choices"][0]
        self.assertEqual({reason, choice["finish_reason"]}, {"stop"})
        return [message["content"], choice["text"]]

    def test_vllms_ways_to_hold_an_answer(self):
        for schema in (self.SCHEMA, json.dumps(self.SCHEMA)):
            for guide in ({"guided_json": schema}, {"structured_outputs": {"json": schema}}):
                for text in self.texts(**guide):
                    self.assertIn(json.loads(text)["a"], ("x", "y"))
        choices = ["yes, \"so\"", "n\\o\n", "é"]
        for guide in ({"guided_choice": choices}, {"structured_outputs": {"choice": choices}}):
            for text in self.texts(**guide):
                self.assertIn(text, choices)
        grammar = exactly("only this")
        for guide in ({"guided_grammar": grammar}, {"structured_outputs": {"grammar": grammar}}):
            self.assertEqual(self.texts(**guide), ["only this"] * 2)

    def test_those_that_cannot_be_kept_are_400(self):
        for path, prompt in ((CHAT, {"messages": HELLO}), (COMPLETIONS, {"prompt": "x"})):
            for guide, field in (
                    ({"guided_regex": "a"}, "guided_regex"),
                    ({"guided_json": 5}, "guided_json"),
                    ({"guided_grammar": "root ::= ("}, "guided_grammar"),
                    ({"structured_outputs": {"regex": "a"}}, "structured_outputs.regex"),
                    ({"structured_outputs": {"json": {"type": "no"}}}, "structured_outputs.json"),
                    ({"structured_outputs": {"grammar": "("}}, "structured_outputs.grammar")):
                self.assertEqual(self.refused(path, {**prompt, **GREEDY, **guide})["param"], field)


if __name__ == "__main__":
    main()
