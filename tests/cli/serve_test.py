#!/usr/bin/env python3
"""strata serve as its operator meets it: loading, limits, disconnects, access, the end."""

import concurrent.futures
import json
import os
import pathlib
import re
import signal
import unittest

import serving
from serving import CHAT, COMPLETIONS, GREEDY, HELLO, TINY, Server
from support import PATIENCE, REFERENCE, ROOT, main, needs, strata

OTHER = REFERENCE / "qwen2.gguf"
# An answer that ends only where the context does, and takes its time.
ENDLESS = {"prompt": "x", "temperature": 0, "max_tokens": -1, "ignore_eos": True,
           "logit_bias": {"511": -100}, "stream": True}


def read_all(client):
    with client:
        return b"".join(iter(lambda: client.recv(65536), b"")).decode()


def options(context=512, memory="512M"):
    return "--context", context, "--memory", memory


@needs(REFERENCE)
class Disconnects(unittest.TestCase):
    """One running sequence at a time, so that others queue."""

    def setUp(self):
        self.server = Server(TINY, *options(4096), "--parallel", 1, "--queue", 3,
                             "--step-rows", 16)
        self.addCleanup(self.server.__exit__)

    def states(self):
        return sorted(slot["state"] for slot in self.server.slots() if slot["is_processing"])

    def test_each_ends_its_request_alone_whatever_that_does(self):
        active = self.server.start(COMPLETIONS, ENDLESS)
        self.server.wait_for(lambda: self.states() == ["generating"])
        queued = self.server.start(COMPLETIONS, ENDLESS)
        self.server.wait_for(lambda: self.states() == ["generating", "queued"])
        queued.close()
        self.server.wait_for(lambda: self.states() == ["generating"])
        prompt = self.server.start(COMPLETIONS, {**ENDLESS, "prompt": [5] * 4000})
        self.server.wait_for(lambda: len(self.states()) == 2)
        active.close()
        self.server.wait_for(lambda: self.states() == ["prompt"])
        prompt.close()
        self.server.wait_for(lambda: not self.states())
        self.assertEqual(self.server.metric("strata:requests_disconnected_total"), 3)
        self.assertEqual([slot["state"] for slot in self.server.slots()], ["left"] * 3)
        self.assertEqual(self.server.post(CHAT, {"messages": HELLO, **GREEDY}).status, 200)

    def test_several_prompts_of_a_client_that_goes_all_end(self):
        client = self.server.start(COMPLETIONS, {**ENDLESS, "prompt": ["a", "b", "c"]})
        self.server.wait_for(lambda: len(self.states()) == 3)
        client.close()
        self.server.wait_for(lambda: not self.states())

    def test_a_full_queue_says_when_to_come_again(self):
        clients = [self.server.start(COMPLETIONS, ENDLESS)]
        self.server.wait_for(lambda: self.states() == ["generating"])
        clients += [self.server.start(COMPLETIONS, ENDLESS) for _ in range(3)]
        self.server.wait_for(lambda: len(self.states()) == 4)
        for path, body in ((CHAT, {"messages": HELLO}), ("/api/chat", {"messages": HELLO})):
            answer = self.server.post(path, body)
            self.assertEqual(answer.status, 503, answer.body)
            self.assertGreaterEqual(int(answer.headers["retry-after"]), 1)
        for client in clients:
            client.close()
        self.server.wait_for(lambda: not self.states())
        # One that fits in part is refused as a whole, and one that never could in another way.
        clients = [self.server.start(COMPLETIONS, ENDLESS)]
        self.server.wait_for(lambda: self.states() == ["generating"])
        clients.append(self.server.start(COMPLETIONS, ENDLESS))
        self.server.wait_for(lambda: len(self.states()) == 2)
        for prompts, status in ("abc", 503), ("abcd", 400):
            answer = self.server.post(COMPLETIONS, {**ENDLESS, "stream": False,
                                                    "prompt": list(prompts)})
            self.assertEqual(answer.status, status, answer.body)
            self.assertEqual(answer.headers.get("retry-after"), {503: "1", 400: None}[status])
        self.assertEqual(answer.error()["param"], "prompt")
        self.assertIn("lets 3 requests of a model wait", answer.error()["message"])
        for client in clients:
            client.close()
        self.server.wait_for(lambda: not self.states())
        self.assertEqual(self.server.post(CHAT, {"messages": HELLO, **GREEDY}).status, 200)


@needs(REFERENCE)
class Scheduling(unittest.TestCase):
    def test_more_than_the_cache_holds_ends_each_at_its_length(self):
        with Server(TINY, *options(128), "--sequences", 1) as server:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                answers = list(pool.map(
                    lambda word: server.post(COMPLETIONS, {
                        "prompt": word, "max_tokens": 300, "temperature": 0, "ignore_eos": True,
                        "logit_bias": {"511": -100}}), ("a", "b", "c", "d")))
            for answer in answers:
                self.assertEqual(answer.status, 200, answer.body)
                self.assertEqual(answer.json()["choices"][0]["finish_reason"], "length")
                self.assertEqual(answer.json()["usage"]["total_tokens"], 128)

    def test_prompts_whose_tokens_could_never_wait_together_are_no_matter_of_coming_again(self):
        with Server(TINY, *options(4096, "128M"), "--step-rows", 16) as server:
            prompts = ["q" * 3500] * 80  # a token each
            answer = server.post(COMPLETIONS, {"prompt": prompts, "max_tokens": 1})
            self.assertEqual(answer.status, 400, answer.body)
            self.assertEqual(answer.error()["param"], "prompt")
            self.assertIn("280000 tokens together", answer.error()["message"])
            counts = server.get("/v1/queue/stats").json()
            self.assertEqual((counts["requests"], counts["refused"]), (80, 80))
            self.assertEqual(server.post(COMPLETIONS, {"prompt": prompts[0], "max_tokens": 1})
                             .status, 200)

    def test_recurrent_models_answer_a_second_request_with_a_known_prefix(self):
        with Server(REFERENCE / "mamba.gguf", *options()) as server:
            texts = []
            for _ in range(2):
                answer = server.post(COMPLETIONS, {"prompt": "shared words " * 20, **GREEDY})
                self.assertEqual(answer.status, 200, answer.body)
                texts.append(answer.json()["choices"][0]["text"])
            self.assertEqual(texts[0], texts[1])
            more = server.post(COMPLETIONS, {"prompt": "shared words " * 20 + texts[0] + " and",
                                             **GREEDY})
            self.assertEqual(more.status, 200, more.body)


@needs(REFERENCE)
class SeveralModels(unittest.TestCase):
    def test_models_come_when_asked_for_and_go_when_idle(self):
        with Server(f"one={TINY}", f"two={OTHER}", *options(), "--lazy") as server:
            self.assertEqual(server.get("/api/ps").json()["models"], [])
            self.assertEqual(server.post(CHAT, {"messages": HELLO}).status, 400)  # which one?
            for name in ("one", "two"):
                answer = server.post(CHAT, {"model": name, "messages": HELLO, **GREEDY})
                self.assertEqual(answer.json()["model"], name)
            owners = re.findall(r'strata:memory_bytes{model_name="(.*)",owner="(.*)"} ',
                                server.get("/metrics").body.decode())
            for model, names in (("one", {"weights", "cache"}), ("two", {"weights", "cache"}),
                                 ("", {"program", "requests"})):
                self.assertGreaterEqual({owner for at, owner in owners if at == model}, names)
            for owner in "program", "requests":
                self.assertEqual([at for at, each in owners if each == owner], [""])
            said = [line for line in server.log if line.startswith("memory: ")]
            self.assertNotIn("less what", said[0])
            self.assertIn("which is 512.0 MiB less what other models take", said[1])
            self.assertEqual(len(server.get("/api/ps").json()["models"]), 2)
            self.assertEqual(len(server.get("/v1/models").json()["data"]), 2)
            server.post("/api/chat", {"model": "one", "messages": HELLO, "keep_alive": "10ms",
                                      "options": {"num_predict": 2}, "stream": False})
            server.wait_for(lambda: [model["name"] for model in
                                     server.get("/api/ps").json()["models"]] == ["two"])

    def with_room_for_one(self):
        # Many rows of activations make each far larger than what a process grows by itself.
        models = [f"one={TINY}", f"two={TINY}", "--step-rows", 4096]
        need = 512 << 20
        for _ in range(3):  # what is kept for requests is a share of the memory
            with Server(*models, *options(4096, int(need))) as server:
                need = server.metric("strata:memory_bytes")
        server = Server(*models, *options(4096, int(need) + (16 << 20)))
        self.addCleanup(server.__exit__)
        return server

    @staticmethod
    def states(server):
        listed = server.get("/v1/admin/loaded-models").json()["data"]
        return {model["id"]: model["status"] for model in listed}

    def test_where_room_is_short_the_idle_one_goes(self):
        server = self.with_room_for_one()
        for name in ("one", "two", "one", "two"):
            answer = server.post(CHAT, {"model": name, "messages": HELLO, **GREEDY})
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(self.states(server), {name: "running"})

    def test_a_client_that_goes_takes_its_wait_for_room_with_it(self):
        server = self.with_room_for_one()
        active = server.start(COMPLETIONS, {**ENDLESS, "model": "one"})
        server.wait_for(lambda: server.slots("generating"))
        ways = [(COMPLETIONS, {**ENDLESS, "model": "two"}),
                (CHAT, {"model": "two", "messages": HELLO}),
                ("/tokenize", {"model": "two", "content": "x"}),
                ("/v1/admin/load-model", {"model_id": "two"}),
                ("/api/generate", {"model": "two"})]
        for path, body in ways:
            waiting = server.start(path, body)
            server.wait_for(lambda: self.states(server).get("two") == "waiting")
            waiting.close()
            server.wait_for(lambda: self.states(server) == {"one": "running"})
        self.assertEqual(server.metric("strata:requests_disconnected_total"), 2)
        active.close()
        server.wait_for(lambda: not server.slots("generating"))
        self.assertEqual(self.states(server), {"one": "running"})

    def test_the_registry_loads_and_unloads(self):
        with Server(f"one={TINY}", f"two={OTHER}", *options()) as server:
            loaded = server.post("/v1/admin/load-model", {"model_id": "two"})
            self.assertEqual(loaded.json()["status"], "running")
            self.assertGreater(loaded.json()["memory"]["total_mb"], 0)
            self.assertEqual(server.post("/v1/admin/load-model", {"model_id": "absent"}).status,
                             404)
            self.assertEqual(server.post("/v1/admin/load-model", {}).status, 400)
            self.assertNotIn("warnings", loaded.json())
            again = server.post("/v1/admin/load-model",
                                {"model_id": "two", "model": "one", "context_length": 99,
                                 "sparkle": 1}).json()
            self.assertEqual(again["id"], "two")
            for name, warning in zip(("model", "context_length", "sparkle"), again["warnings"]):
                self.assertIn(f"`{name}`", warning)
            self.assertEqual(len(again["warnings"]), 3)
            for path in ("../x", TINY, "/absent.gguf"):
                answer = server.post("/v1/admin/load-model", {"model_id": str(path)})
                self.assertEqual(answer.status, 404)
                self.assertIn("by name", answer.error()["message"])
            memory = loaded.json()["memory"]
            self.assertEqual(memory["total_bytes"], memory["total_mb"] * (1 << 20))
            self.assertEqual(server.ask("DELETE", "/v1/admin/unload-model/two").status, 200)
            server.wait_for(lambda: len(server.get("/api/ps").json()["models"]) == 1)
            self.assertEqual(server.ask("DELETE", "/v1/admin/unload-model/absent").status, 404)
            stats = server.get("/v1/queue/stats").json()
            self.assertEqual((stats["running"], stats["waiting"]), (0, 0))

    def test_ps_and_stop_speak_to_the_server(self):
        with Server(f"one={TINY}", f"two={OTHER}", *options()) as server:
            def command(*arguments):
                return strata(*arguments, "--host", "localhost", "--port", server.port)
            listed = command("ps")
            self.assertEqual(listed.returncode, 0, listed.stderr)
            self.assertIn(b"one", listed.stdout)
            self.assertNotIn(b"two", listed.stdout)
            self.assertEqual(json.loads(command("ps", "--json").stdout)["data"][0]["id"], "one")
            active = server.start(COMPLETIONS, {**ENDLESS, "model": "one", "n": 8})
            server.wait_for(lambda: server.slots("generating"))
            self.assertIn(b"last request has ended; there is 1.", command("stop", "one").stderr)
            self.assertRegex(command("ps").stdout.decode(), r"one .* unloading .* when idle")
            again = server.start(COMPLETIONS, {**ENDLESS, "model": "one"})
            server.wait_for(lambda: b" 2  when idle" in command("ps").stdout)
            self.assertIn(b"last request has ended; there is 1.", command("stop", "one").stderr)
            again.close()
            active.close()
            server.wait_for(lambda: not server.get("/api/ps").json()["models"])
            server.post("/v1/admin/load-model", {"model_id": "one"})
            done = command("stop", "one")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(b"one goes now.", done.stderr)
            server.wait_for(lambda: not server.get("/api/ps").json()["models"])
            again = command("stop", "one")
            self.assertEqual(again.returncode, 1)
            self.assertIn(b"is not loaded", again.stderr)
            failed = command("stop", "absent")
            self.assertEqual(failed.returncode, 1)
            self.assertIn(b"absent", failed.stderr)
            self.assertIn(b"no model", command("ps").stdout)
        gone = strata("ps", "--port", server.port)
        self.assertEqual(gone.returncode, 1)
        self.assertIn(b"strata serve", gone.stderr)

    def test_a_bad_one_keeps_the_others_from_nothing(self):
        with serving.scratch() as folder:
            bad = pathlib.Path(folder) / "bad.gguf"
            bad.write_bytes(TINY.read_bytes()[:1000])
            absent = pathlib.Path(folder) / "absent.gguf"
            with Server(bad, TINY, absent, *options(), "--lazy") as server:
                said = [line for line in server.log if line.startswith("warning: not served")]
                self.assertEqual(len(said), 2)
                listed = server.get("/v1/models").json()["data"]
                self.assertEqual([model["id"] for model in listed], ["llama"])
                self.assertGreater(listed[0]["max_model_len"], 0)  # of the file
            for models in ((bad,), (bad, absent)):
                done = strata("serve", *models)
                self.assertEqual(done.returncode, 1)
                self.assertIn(b"bad.gguf", done.stderr)

    def test_what_cannot_be_loaded_says_why(self):
        for model, memory, why in ((f"big={TINY}", "3M", "the model needs "),
                                   (ROOT / "tests/data/bert.gguf", "512M", "encoder")):
            with Server(model, *options(4096, memory), "--lazy", ready=False) as server:
                answer = server.post(CHAT, {"messages": HELLO})
                self.assertEqual(answer.status, 400)
                self.assertIn(why, answer.error()["message"])
                server.wait_for(lambda: any("could not load" in line for line in server.log))
                self.assertRegex(strata("ps", "--port", server.port).stdout,
                                 rb"unloaded +0 MiB +0  -\n")
            # A server of this model alone would be of no use.
            ended = strata("serve", model, *options(4096, memory), "--port", "0")
            self.assertEqual(ended.returncode, 1, ended.stderr)
            self.assertIn(why.encode(), ended.stderr)


@needs(REFERENCE)
class Life(unittest.TestCase):
    def test_sigterm_lets_requests_end(self):
        with Server(TINY, *options(4096), "--grace", 300) as server:
            connection, response = server.open("POST", COMPLETIONS, json.dumps(ENDLESS))
            first = response.readline()
            code = server.stop()
            rest = response.read().decode()
            connection.close()
        self.assertEqual(code, 0)
        self.assertTrue(first.startswith(b"data: "))
        self.assertTrue(rest.endswith("data: [DONE]\n\n"), rest[-100:])
        self.assertIn('"finish_reason":"length"', rest)

    def test_sigterm_tells_each_what_does_not_end_in_time(self):
        lines = {"prompt": "x", "raw": True}
        with Server(TINY, *options(4096), "--grace", 0, "--parallel", 1) as server:
            events = server.start(COMPLETIONS, {**ENDLESS, "n": 8})
            server.wait_for(lambda: server.slots("generating"))
            whole = server.start(COMPLETIONS, {**ENDLESS, "stream": False})
            ollama = server.start("/api/generate", lines)
            server.wait_for(lambda: len(server.slots("queued")) == 2)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                ends = [pool.submit(read_all, client) for client in (events, whole, ollama)]
                self.assertEqual(server.stop(), 0)
                events, whole, ollama = [end.result() for end in ends]
            server.wait_for_line("Stopped: 0 of the requests under way finished, 3 were cut.")
        self.assertRegex(events, r'data: {"error":{"message":"the server is stopping".*}}\n\n'
                         r'(\r\n.*\r\n)?data: \[DONE\]\n\n\r\n0\r\n\r\n$')
        self.assertTrue(whole.startswith("HTTP/1.1 503 "), whole)
        self.assertIn("\r\nRetry-After: 1\r\n", whole)
        self.assertTrue(ollama.endswith('{"error":"the server is stopping"}\n\r\n0\r\n\r\n'),
                        ollama[-200:])

    def test_new_requests_during_the_grace_get_503(self):
        with Server(TINY, *options(4096)) as server:
            active = server.start(COMPLETIONS, {**ENDLESS, "n": 8})
            server.wait_for(lambda: server.slots("generating"))
            connection, response = server.open("GET", "/v1/models")
            response.read()
            server.process.send_signal(signal.SIGTERM)
            server.wait_for_line("Stopping: new requests are refused")
            connection.request("GET", "/v1/models")
            refused = connection.getresponse()
            self.assertEqual((refused.status, refused.getheader("Retry-After")), (503, "1"))
            connection.close()
            server.process.send_signal(signal.SIGTERM)  # at once
            self.assertEqual(server.process.wait(PATIENCE), -signal.SIGTERM)
            active.close()

    def test_the_example_fits_the_model(self):
        with serving.scratch() as folder:
            plain = pathlib.Path(folder) / "plain.gguf"
            key = serving.TEMPLATE_KEY
            plain.write_bytes(TINY.read_bytes().replace(key, b"x" * len(key)))
            for source, path in (TINY, "/v1/chat/completions"), (plain, "/v1/completions"):
                with Server(source, *options()) as server:
                    line = next(line for line in server.log if "curl" in line)
                    command, body = re.fullmatch(r"  curl \S+(/v1/\S+) -d '(.*)'", line).groups()
                    self.assertEqual(command, path)
                    self.assertEqual(server.post(command, body).status, 200)

    def test_options_come_from_a_file_and_the_environment(self):
        with serving.scratch() as folder:
            file = pathlib.Path(folder) / "serve.toml"
            file.write_text("context = 256\nmemory = \"512M\"\nlazy = true\nkeep-alive = \"1s\"\n"
                            "allow-host = [\"a.example\", \"b.example\"]\n", encoding="utf-8")
            with Server(TINY, "--config", file, environment={"STRATA_SERVE_KEEP_ALIVE": "1h"}) \
                    as server:
                self.assertEqual(server.get("/api/ps").json()["models"], [])
                server.post(CHAT, {"messages": HELLO, **GREEDY})
                self.assertEqual(server.get("/v1/models/llama").json()["max_model_len"], 256)
                self.assertEqual(server.get("/v1/models", Host="b.example").status, 200)
                left = server.get("/v1/admin/loaded-models").json()["data"][0]
                self.assertGreater(left["expires_in_seconds"], 3000)
            for text, what in (("contxt = 5\n", "no option 'contxt'"),
                               ("[serve]\ncontext = 5\n", "tables such as"),
                               ("port = 0\nport = 0\n", "redefine"),
                               ("keep-alive = 0\nkeep_alive = 0\n", "twice"),
                               ("help = true", "cannot stand"),
                               ("config = 'x'", "cannot stand")):
                file.write_text(text, encoding="utf-8")
                done = strata("serve", TINY, "--config", file)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("serve.toml, line ", done.stderr.decode())
                self.assertIn(what, done.stderr.decode())

    def test_a_file_may_name_the_models(self):
        with serving.scratch() as folder:
            file = pathlib.Path(folder) / "serve.toml"
            file.write_text(f"# models\nmodels = [\n'one={TINY}', # one\n  'two={OTHER}',\n]\n"
                            "keep_alive = \"1h\"\n"
                            "memory = \"512M\"  # in all\nlazy = true\n", encoding="utf-8")
            with Server("--config", file) as server:
                self.assertEqual([model["id"] for model in server.get("/v1/models").json()["data"]],
                                 ["one", "two"])
            with Server(f"three={TINY}", "--config", file) as server:
                self.assertEqual([model["id"] for model in server.get("/v1/models").json()["data"]],
                                 ["three"])
        done = strata("serve")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"name a model", done.stderr)

    def test_what_is_no_toml_is_told_with_its_line(self):
        with serving.scratch() as folder:
            file = pathlib.Path(folder) / "serve.toml"
            for line, what in (("context 256", "key-value pair"), ("= 5", "expected keys"),
                               ("context =", "value"), ('host = "x', "string"),
                               ('allow-host = ["a" "b"', "array"),
                               ("memory = 512M", "expected digit")):
                file.write_text(f"# a comment\n\n{line} # another\n", encoding="utf-8")
                done = strata("serve", TINY, "--config", file)
                self.assertEqual(done.returncode, 1, line)
                self.assertIn("serve.toml, line 3: ", done.stderr.decode())
                self.assertIn(what, done.stderr.decode())

    def test_variables_that_no_option_has_are_named(self):
        with Server(TINY, *options(), environment={"STRATA_SERVE_CONTXT": "5",
                                                   "STRATA_PORT": "1"}) as server:
            warnings = [line for line in server.log if line.startswith("warning: STRATA")]
            self.assertEqual(len(warnings), 2, server.log)
            self.assertTrue(any("STRATA_SERVE_CONTXT has no effect" in line for line in warnings))
            self.assertTrue(any("STRATA_SERVE_PORT has" in line for line in warnings))

    def test_the_address_that_it_prints_can_be_asked(self):
        with Server(TINY, *options(), "--host", "0.0.0.0") as server:
            self.assertTrue(any(f"Serving on http://127.0.0.1:{server.port}" in line
                                for line in server.log))
            server.wait_for_line("Other machines")
            self.assertTrue(any("needs no key" in line for line in server.log), server.log)

    def test_wrong_values_are_told_with_their_place(self):
        with serving.scratch() as folder:
            file = pathlib.Path(folder) / "serve.toml"
            for name, value, what in (
                    ("context", "many", "1 to 268435456"), ("context", "1.5", "1 to 268435456"),
                    ("port", "70000", "0 to 65535"), ("port", "true", "number"),
                    ("port", "x", "it must be a whole number from 0 to 65535"),
                    ("parallel", "0", "1 to 4096"), ("lazy", "perhaps", "true or false"),
                    ("lazy", "5", "true or false"), ("grace", "soon", "0 to 86400"),
                    ("grace", "nan", "0 to 86400"),
                    ("keep-alive", "soon", "5m"), ("memory", "lots", "512M"),
                    ("cache", "f8", "q8_0")):
                variable = "STRATA_SERVE_" + name.upper().replace("-", "_")
                text = value if value == "true" or value[0].isdigit() else f'"{value}"'
                file.write_text(f"{name} = {text}\n", encoding="utf-8")
                for place, done in (
                        ("serve.toml", strata("serve", TINY, "--config", file)),
                        (variable, strata("serve", TINY, env={**os.environ, variable: value}))):
                    said = done.stderr.decode()
                    self.assertEqual(done.returncode, 1, said)
                    for part in (place, f"'{value}'", name, what):
                        self.assertIn(part, said)
            file.write_text("port = [1, 2]\n", encoding="utf-8")
            self.assertIn(b"one value", strata("serve", TINY, "--config", file).stderr)
        environment = {**os.environ, "STRATA_SERVE_PORT": "many"}
        self.assertIn(b"STRATA_SERVE_PORT: 'many'", strata("ps", env=environment).stderr)
        self.assertEqual(strata("ls", env=environment).returncode, 0)  # it does not serve

    def test_metrics_have_the_names_that_tools_look_for(self):
        with Server(TINY, *options()) as server:
            server.post(CHAT, {"messages": HELLO, **GREEDY})
            text = server.get("/metrics").body.decode()
            for name in ("vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds",
                         "vllm:e2e_request_latency_seconds", "vllm:request_queue_time_seconds",
                         "vllm:num_requests_running", "vllm:num_requests_waiting",
                         "vllm:kv_cache_usage_perc", "vllm:prefix_cache_queries_total",
                         "vllm:prefix_cache_hits_total", "vllm:num_preemptions_total",
                         "vllm:prompt_tokens_total", "vllm:generation_tokens_total",
                         "vllm:request_success_total", "strata:memory_bytes",
                         "strata:step_plan_seconds_total",
                         "strata:step_stall_seconds_total",
                         "strata:step_compute_seconds_total",
                         "strata:step_sample_seconds_total",
                         "strata:step_send_seconds_total"):
                self.assertIn(f"# TYPE {name} ", text)
            names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual(server.metric("vllm:generation_tokens_total"), 12)
            self.assertEqual(server.metric("vllm:request_success_total"), 1)
            for line in (
                    'vllm:request_success_total{model_name="llama",finished_reason="length"} 1',
                    'vllm:request_generation_tokens_count{model_name="llama"} 1'):
                self.assertIn(f"\n{line}\n", text)


@needs(REFERENCE)
class Access(unittest.TestCase):
    def test_keys_hosts_and_origins(self):
        with serving.scratch() as folder:
            keys = pathlib.Path(folder) / "keys"
            keys.write_text("# of friends\nsecret-1\n\nsecret-2\n", encoding="utf-8")
            with Server(TINY, *options(), "--api-keys", keys) as server:
                self.assertEqual(server.get("/v1/models").status, 401)
                self.assertEqual(server.get("/health").status, 200)
                for headers in ({"Authorization": "Bearer secret-1"}, {"x-api-key": "secret-2"}):
                    self.assertEqual(server.get("/v1/models", **headers).status, 200)
                for headers in ({"Authorization": "Bearer secret"}, {"x-api-key": "# of friends"},
                                {"Authorization": "Basic secret-1"}):
                    self.assertEqual(server.get("/v1/models", **headers).status, 401)
                good = {"x-api-key": "secret-1"}
                self.assertEqual(server.get("/v1/models", **good, Host="evil.example").status, 403)
                page = server.get("/v1/models", **good, Origin="https://evil.example")
                self.assertNotIn("access-control-allow-origin", page.headers)
                page = server.get("/v1/models", **good, Origin="http://localhost:3000")
                self.assertEqual(page.headers["access-control-allow-origin"],
                                 "http://localhost:3000")
                asked = server.ask("OPTIONS", CHAT, headers={
                    "Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"})
                self.assertIn(asked.status, (200, 204))
                listed = strata("ps", "--port", server.port, "--api-keys", keys)
                self.assertEqual(listed.returncode, 0, listed.stderr)
                self.assertEqual(strata("ps", "--port", server.port).returncode, 1)
                self.assertFalse(any("needs no key" in line for line in server.log))
        with Server(TINY, *options(), "--allow-host", "box.example", "--allow-origin",
                    "https://app.example") as server:
            page = server.get("/v1/models", Host="box.example", Origin="https://app.example")
            self.assertEqual(page.status, 200)
            self.assertEqual(page.headers["access-control-allow-origin"], "https://app.example")

    def test_empty_and_absent_key_files_are_refused(self):
        with serving.scratch() as folder:
            empty = pathlib.Path(folder) / "empty"
            empty.write_text("# nothing\n", encoding="utf-8")
            for path in (empty, pathlib.Path(folder) / "absent"):
                done = strata("serve", TINY, "--api-keys", path)
                self.assertEqual(done.returncode, 1)
                self.assertIn(path.name.encode(), done.stderr)


@needs(REFERENCE)
class Noise(unittest.TestCase):
    def test_lines_that_change_with_every_call_can_be_left_out(self):
        header = "x-anthropic-billing-header: cc_version=2.1.37.0d9; cc_entrypoint=cli; cch="
        system = "You are a helpful assistant, and thorough in all things. " * 4
        with serving.scratch() as folder:
            rules = pathlib.Path(folder) / "rules"
            rules.write_text("# what clients send\nx-anthropic-billing-header:\n"
                             "Today's date is *.\n", encoding="utf-8")
            with Server(TINY, *options(), "--neutralize", rules) as server:
                def ask(content, path=CHAT):
                    done = server.post(path, {
                        "messages": [{"role": "system", "content": content}] + HELLO, **GREEDY})
                    self.assertEqual(done.status, 200, done.body)
                    return done.json()
                whole = ask(system)["usage"]["prompt_tokens"]
                for number, content in enumerate([
                        f"{header}fa690;\n{system}", f"{header}0b1;\n{system}",
                        [{"type": "text", "text": f"{header}77a;"},
                         {"type": "text", "text": system}],
                        f"{system}\nToday's date is 2031-0{5}-01."]):
                    done = ask(content)
                    usage = done["usage"]
                    self.assertIn("system prompt", done["warnings"][0])
                    self.assertLessEqual(usage["prompt_tokens"], whole + 2, number)
                    self.assertGreater(usage["prompt_tokens_details"]["cached_tokens"], whole // 2)
                user = server.post(CHAT, {"messages": [{"role": "user", "content": header}],
                                          **GREEDY}).json()
                self.assertNotIn("warnings", user)


if __name__ == "__main__":
    main()
