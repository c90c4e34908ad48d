"""A server of a test: the program on a free port, and what its clients send it."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time
import unittest

from support import PATIENCE, PROGRAM, REFERENCE

TINY = REFERENCE / "llama.gguf"
TEMPLATES = REFERENCE.parent / "templates"  # of published models
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HELLO = [{"role": "user", "content": "hello"}]
GREEDY = {"temperature": 0, "max_tokens": 12}
WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "Tells the weather.",
    "parameters": {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]},
                                                    "days": {"type": "integer", "minimum": 1,
                                                             "maximum": 9}},
                   "required": ["city", "days"], "additionalProperties": False}}}
TAG = 509  # a token that some tests call so
TIME = {"type": "function", "function": {"name": "time"}}

GGUF_STRING, GGUF_ARRAY = 8, 9
GGUF_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
TEMPLATE_KEY, TOKENS_KEY = b"tokenizer.chat_template", b"tokenizer.ggml.tokens"

# The turns of the tiny models, with tools as Hermes has them and thinking that can be switched.
HERMES = (
    "{% if tools %}<|bos|>tools\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}"
    "Answer with <tool_call>{\"name\": .., \"arguments\": ..}</tool_call><|eos|>\n{% endif %}"
    "{% for m in messages %}<|bos|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>\n"
    "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n"
    "</tool_call>{% endfor %}<|eos|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|bos|>assistant\n{% endif %}")
THINKER = (
    "{% for m in messages %}<|bos|>{{ m.role }}\n{{ m.content }}<|eos|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|bos|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}{% endif %}")
STRICT = (
    "{% if messages[0].role != 'user' %}{{ raise_exception('the first turn is the user\\'s') }}"
    "{% endif %}{% for m in messages %}<|bos|>{{ m.role }}\n{{ m.content }}<|eos|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|bos|>assistant\n{% endif %}")


def published(name):
    path = TEMPLATES / f"{name}.jinja"
    return path.read_text(encoding="utf-8") if path.exists() else None


def with_template(source, target, template, tokens=None):
    """Writes a copy of a GGUF file with another chat template, and other texts of some tokens."""
    data = source.read_bytes()
    version, tensors, pairs = struct.unpack_from("<IQQ", data, 4)
    assert data[:4] == b"GGUF" and version == 3
    at, alignment, edits = 24, 32, []  # (start, end, text) of strings

    def skip(kind, at):
        if kind == GGUF_STRING:
            return at + 8 + struct.unpack_from("<Q", data, at)[0]
        if kind == GGUF_ARRAY:
            inner, count = struct.unpack_from("<IQ", data, at)
            at += 12
            if inner in GGUF_SIZES:
                return at + count * GGUF_SIZES[inner]
            for _ in range(count):
                at = skip(inner, at)
            return at
        return at + GGUF_SIZES[kind]

    for _ in range(pairs):
        length = struct.unpack_from("<Q", data, at)[0]
        key = data[at + 8:at + 8 + length]
        at += 8 + length
        kind = struct.unpack_from("<I", data, at)[0]
        end = skip(kind, at + 4)
        if key == TEMPLATE_KEY:
            edits.append((at + 4, end, template.encode()))
        if key == TOKENS_KEY:
            start = at + 4 + 12
            for token in range(struct.unpack_from("<Q", data, at + 8)[0]):
                if token in (tokens or {}):
                    edits.append((start, skip(GGUF_STRING, start), tokens[token].encode()))
                start = skip(GGUF_STRING, start)
        at = end
    for _ in range(tensors):
        at = skip(GGUF_STRING, at)
        at += 4 + 8 * struct.unpack_from("<I", data, at)[0] + 4 + 8
    head, done = b"", 0
    for start, end, text in sorted(edits):
        head += data[done:start] + struct.pack("<Q", len(text)) + text
        done = end
    head += data[done:at]
    pad = -len(head) % alignment
    target.write_bytes(head + bytes(pad) + data[at + -at % alignment:])
    return target


class Answer:
    """A whole response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def error(self):
        return self.json()["error"]


class Server:
    """`strata serve` with these arguments, until the end of a `with`. `before`: words before the
    command."""

    def __init__(self, *arguments, ready=True, environment=None, before=()):
        self.log = []
        self.process = subprocess.Popen(
            [*before, PROGRAM, "serve", *map(str, arguments), "--port", "0"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(environment or {})})
        self.port = None
        self.serving = threading.Event()
        threading.Thread(target=self.read_log, daemon=True).start()
        if not self.serving.wait(PATIENCE) or self.port is None:
            self.process.kill()
            raise AssertionError(f"no server: {self.log}")
        if ready:
            self.wait_for(lambda: self.get("/health").status == 200)

    def read_log(self):
        with self.process.stderr as stream:
            for line in stream:
                self.log.append(line.rstrip("\n"))
                if match := re.search(r"Serving on http://.*:(\d+)$", self.log[-1]):
                    self.port = int(match.group(1))
                    self.serving.set()
        self.serving.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self):
        """Ends it as an operator does, and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def wait_for(self, condition, patience=PATIENCE):
        limit = time.monotonic() + patience
        while not condition():
            if time.monotonic() > limit or self.process.poll() is not None:
                raise AssertionError(f"waited in vain; the server says {self.log}")
            time.sleep(0.01)

    def wait_for_line(self, start):
        # The program may be gone by then.
        limit = time.monotonic() + PATIENCE
        while not any(line.startswith(start) for line in self.log):
            assert time.monotonic() < limit, f"no line '{start}' in {self.log}"
            time.sleep(0.01)

    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def open(self, method, path, body=None, headers=None):
        """The connection and its response, whose body has not been read."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        connection.request(method, path, body, headers or {})
        return connection, connection.getresponse()

    def ask(self, method, path, body=None, headers=None):
        connection, response = self.open(method, path, body, headers)
        with contextlib.closing(connection):
            return Answer(response)

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, body):
        return self.ask("POST", path, body)

    def events(self, path, body):
        """The events of a stream, parsed; without the sentinel of OpenAI's, which must be last."""
        answer = self.post(path, {**body, "stream": True})
        assert answer.status == 200, (answer.status, answer.body)
        if answer.headers["content-type"].startswith("application/x-ndjson"):
            return [json.loads(line) for line in answer.body.decode().splitlines()]
        events = [event for event in answer.body.decode().split("\n\n")
                  if event and not event.startswith(":")]
        assert all(event.startswith("data: ") for event in events), events
        assert events[-1] == "data: [DONE]", events
        return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]

    def start(self, path, body):
        """Sends a request on a socket of its own, whose answer nobody has read."""
        text = json.dumps(body).encode()
        client = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)
        client.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" %
                       (path.encode(), len(text), text))
        return client

    def slots(self, *states):
        """What /slots says of requests in these states, or of all."""
        return [slot for slot in self.get("/slots").json() if not states or slot["state"] in states]

    def metric(self, name):
        text = self.get("/metrics").body.decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                   if re.match(re.escape(name) + r"[ {]", line))


class Served(unittest.TestCase):
    """Tests of one server on one model."""

    template = None
    tokens = None  # other texts of some of the vocabulary
    options = ("--context", 512, "--memory", "512M")

    @classmethod
    def setUpClass(cls):
        cls.folder = scratch()
        cls.addClassCleanup(cls.folder.cleanup)
        model = TINY
        if cls.template is not None:
            model = with_template(TINY, pathlib.Path(cls.folder.name) / "llama.gguf", cls.template,
                                  cls.tokens)
        cls.server = Server(model, *cls.options)
        cls.addClassCleanup(cls.server.__exit__)

    def refused(self, path, body, status=400):
        """What is said of a request that must get this status."""
        answer = self.server.post(path, body)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json()["error"]


def joined(events, choice=0):
    """What the events of a chat stream add up to: as a message, and the finish reason."""
    message, reason, calls = {}, None, []
    for event in events:
        for part in event["choices"]:
            if part["index"] != choice:
                continue
            reason = part["finish_reason"] or reason
            for key, text in part["delta"].items():
                if key == "tool_calls":
                    for call in text:
                        add_call(calls, call)
                elif key != "role":
                    message[key] = message.get(key, "") + text
    if calls:
        message["tool_calls"] = calls
    return message, reason


def add_call(calls, delta):
    if delta["index"] == len(calls):
        calls.append({"id": delta["id"], "type": delta["type"],
                      "function": {"name": delta["function"]["name"], "arguments": ""}})
    calls[delta["index"]]["function"]["arguments"] += delta["function"].get("arguments", "")


def scratch():
    return tempfile.TemporaryDirectory(prefix="strata-serve-")


def exactly(text):
    """A grammar of which a model can only say this."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'root ::= "{escaped}"'
