#!/usr/bin/env python3
"""Holds a server under more load than it can bear, and looks for what that wears out.

Clients ask with greedy sampling, leave half way, and send what is no request; meanwhile a second
model comes and goes. At the end, or at the first fault, it says what it saw. The exit code is 1
where an answer differs from that of the idle server, where memory grows by more than 1 % in the
last third of the time, where the server dies, or where a good request fails other than by 503.
"""

import argparse
import collections
import datetime
import http.client
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import threading
import time

WORDS = ("river stone cloud lamp winter garden paper engine valley signal copper window "
         "forest market bridge summer").split()
GROWTH = 0.01
SAMPLE_SECONDS = 0.25
PATIENCE = 300  # seconds until an answer counts as lost
MALFORMED = [
    b"GET / HTTP/9.9\r\n\r\n",
    b"\x00\xff\xfe" * 40 + b"\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{\"prompt\"",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
]
REFUSED = [  # bodies that have to get 400
    b"{", b"[]", b'{"prompt": 5}', b'{"prompt": "a", "max_tokens": "many"}',
    b'{"prompt": "a", "temperature": -1}', b"[" * 1000, b'{"prompt": "\xff"}',
    b'{"prompt": "a", "n": 1000000}',
]


class Fault(Exception):
    """What ends the soak."""


class Server:
    """strata serve with one or two models, at a port that it chose."""

    def __init__(self, program, models, more):
        self.process = subprocess.Popen(
            [program, "serve", *models, "--port", "0", *more], stderr=subprocess.PIPE, text=True)
        self.port, said = None, []
        for line in self.process.stderr:
            said.append(line)
            if match := re.match(r"Serving on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(match.group(1))
            if line.startswith("OpenAI base URL"):
                break
        if self.port is None:
            raise Fault(f"the server does not start: {''.join(said).strip()}")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        while self.ask("GET", "/health")[0] == 503:
            time.sleep(0.05)

    def ask(self, method, path, body=None, timeout=PATIENCE):
        """(status, body) of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
            connection.request(method, path, data)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def exit_code(self, seconds):
        """None where it runs on for so long."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def models(self):
        return [each["id"] for each in json.loads(self.ask("GET", "/v1/models")[1])["data"]]

    def resident(self):
        """Bytes of anonymous memory; mapped files come and go as the system likes."""
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return 1024 * int(re.search(r"RssAnon:\s+(\d+)", status).group(1))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Fault("the server does not stop on SIGTERM") from None


def request_of(number, model):
    """A request whose prompt names it, so that no other has the same answer to expect."""
    chance = random.Random(number)
    words = " ".join(chance.choice(WORDS) for _ in range(chance.randint(4, 120)))
    return {"model": model, "prompt": f"Request {number}: {words}. Again: request {number},",
            "max_tokens": chance.randint(4, 24), "temperature": 0, "seed": number, "logprobs": 0}


def answer_of(body):
    """What has to be equal bit for bit: the text, its end and every log-probability."""
    choice = json.loads(body)["choices"][0]
    return json.dumps([choice["text"], choice["finish_reason"], choice["logprobs"]])


class Soak:
    def __init__(self, server, options):
        self.server, self.options = server, options
        self.models = server.models()
        self.expected = {}
        self.counts, self.lock = collections.Counter(), threading.Lock()
        self.fault, self.over = None, threading.Event()
        self.memory = []  # bytes, sampled at equal times

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def learn(self):
        """The answers of the idle server, one request at a time, and with nothing in its cache."""
        for number in range(self.options.prompts):
            request = request_of(number, self.models[0]) | {"cache_salt": f"idle {number}"}
            status, body = self.server.ask("POST", "/v1/completions", request)
            if status != 200:
                raise Fault(f"the idle server answers {status}: {body[:300]!r}")
            self.expected[number] = answer_of(body)
        if len(set(self.expected.values())) < 0.9 * len(self.expected):
            raise Fault("the answers are too alike to tell requests apart")

    def good(self, chance):
        number = chance.randrange(self.options.prompts)
        status, body = self.server.ask("POST", "/v1/completions",
                                       request_of(number, self.models[0]))
        if status == 503:
            self.count("told to come back (503)")
            time.sleep(0.05)
        elif status != 200:
            raise Fault(f"request {number} got {status}: {body[:300]!r}")
        elif answer_of(body) != self.expected[number]:
            owner = [n for n, answer in self.expected.items() if answer == answer_of(body)]
            whose = f"the answer to request {owner[0]}" if owner else "another answer"
            raise Fault(f"request {number} got {whose} than the idle server's:\n{answer_of(body)}\n"
                        f"instead of\n{self.expected[number]}")
        else:
            self.count("answers equal to the idle server's")

    def leave(self, chance):
        """A client that goes: at once, in its prompt, or while it is answered."""
        request = request_of(chance.randrange(self.options.prompts), self.models[0])
        request |= {"stream": True, "max_tokens": 200}
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        try:
            connection.request("POST", "/v1/completions", json.dumps(request).encode())
            if chance.random() < 0.7:
                answer = connection.getresponse()
                answer.read(chance.randrange(1, 3000))
            else:
                time.sleep(chance.random() * 0.05)
        finally:
            connection.close()
        self.count("clients that left")

    def disturb(self, chance):
        self.over.wait(0.02 * chance.random())
        if chance.random() < 0.5:
            status, body = self.server.ask("POST", "/v1/completions", chance.choice(REFUSED))
            if status != 400:
                raise Fault(f"what is no request got {status}: {body[:300]!r}")
            self.count("bodies refused")
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        try:
            connection.connect()
            connection.sock.sendall(chance.choice(MALFORMED))
            if chance.random() < 0.5:
                connection.sock.settimeout(0.1)
                connection.sock.recv(4096)
        except (TimeoutError, ConnectionError):
            pass
        finally:
            connection.close()
        self.count("bytes that are no request")

    def exchange_models(self, chance):
        """A second model is loaded, asked and unloaded."""
        name = self.models[1]
        status, body = self.server.ask("POST", "/v1/admin/load-model", {"model_id": name})
        if status not in (200, 503):
            raise Fault(f"loading {name} got {status}: {body[:300]!r}")
        request = request_of(chance.randrange(self.options.prompts), name)
        status, body = self.server.ask("POST", "/v1/completions", request)
        if status not in (200, 503):
            raise Fault(f"{name} answers {status}: {body[:300]!r}")
        self.server.ask("POST", f"/v1/admin/unload-model/{name}")
        self.count("models loaded and unloaded")
        self.over.wait(chance.random() * 0.5)

    def state(self):
        """What the server does, for a fault's sake."""
        try:
            return self.server.ask("GET", "/slots", timeout=10)[1].decode()[:2000]
        except (OSError, http.client.HTTPException) as error:
            return f"/slots: {type(error).__name__}: {error}"

    def work(self, what, seed):
        chance = random.Random(seed)
        while not self.over.is_set():
            try:
                what(chance)
            except Exception as fault:  # whatever it is, it ends the soak
                code = self.server.exit_code(1)
                first = not self.over.is_set()
                self.over.set()
                if first and code is not None:
                    self.fault = f"the server ended with {code}"
                elif first:
                    self.fault = f"{what.__name__}: {type(fault).__name__}: {fault}; {self.state()}"

    def run(self):
        options = self.options
        workers = [self.good] * max(options.parallel * 3 // 2, 2)
        workers += [self.leave] * 2 + [self.disturb]
        if len(self.models) > 1:
            workers.append(self.exchange_models)
        threads = [threading.Thread(target=self.work, args=(what, i), daemon=True)
                   for i, what in enumerate(workers)]
        start = time.monotonic()
        for thread in threads:
            thread.start()
        seconds = 60 * options.minutes
        while time.monotonic() - start < seconds and not self.over.wait(SAMPLE_SECONDS):
            if self.server.process.poll() is None:
                self.memory.append(self.server.resident())
        self.over.set()
        for thread in threads:
            thread.join(PATIENCE)

    def growth(self):
        """Of the lowest memory, as models come and go: at the end over a third of the time before.

        Gives the growth and both.
        """
        sixth = max(len(self.memory) // 6, 1)
        before = min(self.memory[3 * sixth:4 * sixth])
        last = min(self.memory[-sixth:])
        return last / before - 1, before, last

    def check_idle(self):
        """Nothing is left of those that went, and the answers are as they were."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            slots = json.loads(self.server.ask("GET", "/slots")[1])
            if not [slot for slot in slots if slot["is_processing"]]:
                break
            time.sleep(0.1)
        else:
            raise Fault(f"requests run on without clients: {slots}")
        for number in list(self.expected)[:8]:
            _, body = self.server.ask("POST", "/v1/completions", request_of(number, self.models[0]))
            if answer_of(body) != self.expected[number]:
                raise Fault(f"after the soak request {number} has another answer")


def report(soak):
    for what, count in sorted(soak.counts.items()):
        print(f"{count:8d} {what}")
    if len(soak.memory) >= 6:
        growth, before, last = soak.growth()
        print(f"memory {before / 2**20:.2f} MiB, a third of the time later {last / 2**20:.2f} MiB "
              f"({100 * growth:+.2f} %)")
    sys.stdout.flush()


def identity(program, model):
    """The program and its machine, as strata bench names them."""
    done = subprocess.run([program, "bench", model, "-p", "0", "-n", "1", "-r", "1", "--json"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Fault(f"strata bench: {done.stderr.strip()[-500:]}")
    said = json.loads(done.stdout)
    return {key: said[key] for key in ("strata", "machine", "model")}


def record(soak, options, who):
    """What bench/results keeps."""
    growth, before, last = soak.growth()
    return {"kind": "soak", **who,
            "date": datetime.date.today().isoformat(), "minutes": options.minutes,
            "counts": dict(sorted(soak.counts.items())),
            "memory": {"growth": growth, "before_bytes": before, "last_bytes": last}}


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="strata")
    parser.add_argument("models", nargs="+", help="the first is asked, the second comes and goes")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--prompts", type=int, default=64, help="different requests")
    parser.add_argument("--parallel", type=int, default=8, help="sequences at a time")
    parser.add_argument("--serve-args", default="", help="more arguments for strata serve")
    parser.add_argument("--json", help="a file for the results, for bench/results")
    return parser.parse_args(words)


def main(words):
    options = parse(words)
    more = ["--parallel", str(options.parallel), "--queue", str(max(options.parallel // 2, 1)),
            "--context", "2048", *options.serve_args.split()]
    server = soak = None
    try:
        program = os.path.abspath(options.program)
        who = options.json and identity(program, options.models[0].split("=", 1)[-1])
        server = Server(program, options.models[:2], more)
        soak = Soak(server, options)
        soak.learn()
        soak.run()
        report(soak)
        if soak.fault:
            raise Fault(soak.fault)
        if not soak.counts["answers equal to the idle server's"]:
            raise Fault("no answer came")
        soak.check_idle()
        if len(soak.memory) < 6:
            raise Fault("too short to see whether memory grows")
        growth = soak.growth()[0]
        if growth > GROWTH:
            raise Fault(f"memory has grown by {100 * growth:.2f} % in the last third of the time")
        if (code := server.stop()) != 0:
            raise Fault(f"the server ended with {code}")
        if options.json:
            pathlib.Path(options.json).write_text(
                json.dumps(record(soak, options, who), indent=1) + "\n", encoding="utf-8")
    except Fault as fault:
        print(f"soak: {fault}", file=sys.stderr)
        return 1
    finally:
        if server is not None and server.process.poll() is None:
            server.process.kill()
            server.process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
