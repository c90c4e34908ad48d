#!/usr/bin/env python3
"""strata serve: what holds whichever protocol a client speaks."""

import pathlib
import struct
import unittest

from serving import CHAT, COMPLETIONS, HELLO, TINY, Server, scratch
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


if __name__ == "__main__":
    main()
