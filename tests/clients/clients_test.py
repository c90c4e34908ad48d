#!/usr/bin/env python3
"""strata serve as the official clients of its protocols meet it.

tools/client_packages.py installs them.
"""

import json
import os
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "cli"), str(HERE.parents[1] / "tools")]

import client_packages  # noqa: E402

CLIENTS = client_packages.client_folder(os.environ)
if not client_packages.is_complete(CLIENTS):
    print("the clients are not there (make dev-deps installs them): not tested")
    sys.exit(77)
sys.path.insert(0, str(CLIENTS))

import ollama  # noqa: E402
import openai  # noqa: E402

import serving  # noqa: E402
from serving import HERMES, TINY, Server, with_template  # noqa: E402
from support import REFERENCE, main, needs  # noqa: E402

HELLO = [{"role": "user", "content": "hello"}]
WEATHER = {"type": "function", "function": {
    "name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "enum": ["Paris", "Rome"]}},
        "required": ["city"], "additionalProperties": False}}}


@needs(REFERENCE)
class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = serving.scratch()
        cls.addClassCleanup(folder.cleanup)
        model = with_template(TINY, pathlib.Path(folder.name) / "tiny.gguf", HERMES)
        cls.server = Server(model, "--context", 512, "--memory", "512M")
        cls.addClassCleanup(cls.server.__exit__)
        cls.openai = openai.OpenAI(base_url=cls.server.url() + "/v1", api_key="none",
                                   max_retries=0)
        cls.ollama = ollama.Client(cls.server.url())

    def test_openai_chats(self):
        asked = {"model": "tiny", "temperature": 0, "max_tokens": 12,
                 "messages": [{"role": "user", "content": "hello " * 60}]}
        whole = self.openai.chat.completions.create(**asked, logprobs=True, top_logprobs=2)
        choice = whole.choices[0]
        self.assertEqual(choice.finish_reason, "length")
        self.assertEqual(len(choice.logprobs.content), 12)
        chunks = list(self.openai.chat.completions.create(
            **asked, stream=True, stream_options={"include_usage": True}))
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        self.assertEqual(text, choice.message.content)
        self.assertEqual(chunks[-1].choices, [])
        self.assertEqual(chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
        self.assertGreater(chunks[-1].usage.prompt_tokens_details.cached_tokens, 0)

    def test_openai_calls_tools(self):
        asked = {"model": "tiny", "messages": HELLO, "tools": [WEATHER], "max_tokens": 400,
                 "temperature": 0, "parallel_tool_calls": False,
                 "tool_choice": {"type": "function", "function": {"name": "weather"}}}
        message = self.openai.chat.completions.create(**asked).choices[0].message
        call = message.tool_calls[0]
        self.assertIn(json.loads(call.function.arguments)["city"], ("Paris", "Rome"))
        with self.openai.chat.completions.stream(**asked) as stream:
            final = stream.get_final_completion().choices[0]
        self.assertEqual(final.finish_reason, "tool_calls")
        self.assertEqual(final.message.tool_calls[0].function.arguments, call.function.arguments)
        answered = self.openai.chat.completions.create(
            model="tiny", max_tokens=2, tools=[WEATHER], messages=HELLO + [
                message.model_dump(exclude_none=True),
                {"role": "tool", "tool_call_id": call.id, "content": "sunny"}])
        self.assertEqual(answered.usage.completion_tokens, 2)

    def test_openai_parses_structured_answers(self):
        form = {"type": "json_schema", "json_schema": {
            "name": "city", "strict": True, "schema": WEATHER["function"]["parameters"]}}
        done = self.openai.chat.completions.create(
            model="tiny", messages=HELLO, response_format=form, max_tokens=100, temperature=0)
        self.assertIn(json.loads(done.choices[0].message.content)["city"], ("Paris", "Rome"))

    def test_openai_completes(self):
        done = self.openai.completions.create(model="tiny", prompt=["one", "two"], n=2, echo=True,
                                              max_tokens=4, logprobs=1, seed=1, stop=["zz"])
        self.assertEqual([choice.index for choice in done.choices], [0, 1, 2, 3])
        self.assertTrue(done.choices[3].text.startswith("two"))
        pieces = list(self.openai.completions.create(model="tiny", prompt="one", stream=True,
                                                     max_tokens=4))
        self.assertEqual(pieces[-1].choices[0].finish_reason, "length")

    def test_openai_sees_errors_as_its_own(self):
        with self.assertRaises(openai.NotFoundError):
            self.openai.chat.completions.create(model="absent", messages=HELLO)
        with self.assertRaises(openai.BadRequestError) as refused:
            self.openai.chat.completions.create(model="tiny", messages=[
                {"role": "user", "content": "word " * 700}])
        self.assertEqual(refused.exception.body["n_ctx"], 512)
        with self.assertRaises(openai.BadRequestError) as refused:
            self.openai.chat.completions.create(model="tiny", messages=HELLO, temperature=-1)
        self.assertEqual(refused.exception.param, "temperature")

    def test_openai_lists_models(self):
        self.assertEqual([model.id for model in self.openai.models.list()], ["tiny"])
        self.assertEqual(self.openai.models.retrieve("tiny").owned_by, "strata")

    def test_ollama_chats_and_generates(self):
        options = {"temperature": 0, "num_predict": 12}
        whole = self.ollama.chat("tiny", HELLO, options=options, keep_alive="5m")
        pieces = list(self.ollama.chat("tiny", HELLO, options=options, stream=True))
        self.assertEqual("".join(piece.message.content for piece in pieces),
                         whole.message.content)
        self.assertEqual(pieces[-1].done_reason, "length")
        self.assertGreater(pieces[-1].eval_duration, 0)
        self.assertEqual(pieces[-1].eval_count, 12)
        done = self.ollama.generate("tiny", "hello", system="brief", options=options)
        self.assertEqual(done.eval_count, 12)
        pieces = list(self.ollama.generate("tiny", "hello", raw=True, options=options,
                                           stream=True))
        self.assertTrue(pieces[-1].done)

    def test_ollama_gets_structure_and_tools(self):
        schema = WEATHER["function"]["parameters"]
        done = self.ollama.chat("tiny", HELLO, format=schema,
                                options={"temperature": 0, "num_predict": 100})
        self.assertIn(json.loads(done.message.content)["city"], ("Paris", "Rome"))

        def weather(city: str) -> str:
            """Tells the weather.

            Args:
              city: where
            """
            return city
        done = self.ollama.chat("tiny", HELLO, tools=[weather], options={"num_predict": 4})
        self.assertLessEqual(done.eval_count, 4)

    def test_ollama_manages_models(self):
        model = self.ollama.list().models[0]
        self.assertEqual((model.model, len(model.digest)), ("tiny", 64))
        self.assertGreater(model.size, 0)
        self.assertIn("tools", self.ollama.show("tiny").capabilities)
        self.assertEqual(self.ollama.ps().models[0].model, "tiny")
        self.assertEqual(self.ollama.pull("tiny").status, "success")
        with self.assertRaises(ollama.ResponseError) as refused:
            self.ollama.show("absent")
        self.assertEqual(refused.exception.status_code, 404)


if __name__ == "__main__":
    main()
