#!/usr/bin/env python3
"""strata serve as a process of a system: its descriptors, and who reads what it says."""

import contextlib
import http.client
import json
import os
import re
import resource
import signal
import socket
import subprocess
import time
import unittest

from serving import COMPLETIONS, TINY, Server
from support import PATIENCE, PROGRAM, REFERENCE, main, needs, strata_in_shell
from web import closed_port

MODELS = f"one={TINY}", f"two={REFERENCE / 'qwen2.gguf'}", "--context", 512, "--memory", "512M"


def with_limit(soft, hard):
    """Words before a command that may have so many files open."""
    return "sh", "-c", f'ulimit -Sn {soft} && ulimit -Hn {hard} && exec "$@"', "sh"


def complete(server, model):
    return server.post(COMPLETIONS, {"model": model, "prompt": "x", "max_tokens": 2}).status


def completes(server, model):
    with contextlib.suppress(OSError):  # one that is turned away may be before it has asked
        return complete(server, model) == 200
    return False


@needs(REFERENCE)
class Descriptors(unittest.TestCase):
    def open(self, server, count):
        """Connections that stay open and ask nothing."""
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
            self.addCleanup(client.close)

    def test_the_soft_limit_is_no_limit(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        with Server(*MODELS, before=with_limit(128, hard)) as server:
            self.open(server, 200)
            self.assertEqual([complete(server, name) for name in ("one", "two")], [200, 200])
            self.assertEqual(server.stop(), 0)

    def test_the_hard_limit_leaves_room_for_models(self):
        with Server(*MODELS, before=with_limit(300, 300)) as server:
            note, = [line for line in server.log if "connections at a time" in line]
            most, wanted, limit = map(int, re.findall(r"\d+", note))
            self.assertEqual((wanted, limit), (1024, 300))
            self.assertGreater(most, 100)
            self.open(server, limit + 50)
            for name in "one", "two":
                # Connections that are idle for a second make room.
                server.wait_for(lambda name=name: completes(server, name))
            self.assertEqual(server.stop(), 0)
        with Server(*MODELS, "--connections", 50, before=with_limit(300, 300)) as server:
            self.assertFalse(any("connections at a time" in line for line in server.log))


@needs(REFERENCE)
class StandardError(unittest.TestCase):
    def start(self, redirection, **streams):
        self.port = closed_port()
        process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" {redirection}', "sh", PROGRAM, "serve", *map(str, MODELS),
             "--port", str(self.port)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            **streams)
        self.addCleanup(process.wait, PATIENCE)
        self.addCleanup(process.kill)
        return process

    def ask(self, method, path, body=None):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port,
                                                           timeout=PATIENCE)) as connection:
            connection.request(method, path, body and json.dumps(body))
            return connection.getresponse().status

    def complete(self, model):
        return self.ask("POST", COMPLETIONS, {"model": model, "prompt": "x", "max_tokens": 2})

    def wait_until_ready(self, process):
        limit = time.monotonic() + PATIENCE
        while True:
            self.assertIsNone(process.poll())
            with contextlib.suppress(OSError):
                if self.ask("GET", "/health") == 200:
                    return
            self.assertLess(time.monotonic(), limit)
            time.sleep(0.01)

    def test_whoever_reads_it_may_go(self):
        process = self.start("", stderr=subprocess.PIPE)
        with process.stderr:
            process.stderr.readline()
        self.wait_until_ready(process)
        self.assertEqual([self.complete(name) for name in ("one", "two")], [200, 200])
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)

    def test_where_it_is_closed_no_socket_takes_its_place(self):
        process = self.start("<&- >&- 2>&-")
        self.wait_until_ready(process)
        self.assertEqual([self.complete(name) for name in ("one", "two")], [200, 200])
        links = f"/proc/{process.pid}/fd"
        if os.path.isdir(links):
            self.assertEqual([os.readlink(f"{links}/{each}") for each in range(3)],
                             ["/dev/null"] * 3)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(PATIENCE), 0)


@needs(REFERENCE)
class StandardInput(unittest.TestCase):
    def test_a_closed_one_cannot_be_read(self):
        done = strata_in_shell("<&-", "tokenize", TINY)
        self.assertEqual(done.returncode, 1, done.stdout[:200])
        self.assertIn(b"cannot read standard input", done.stderr)


if __name__ == "__main__":
    main()
