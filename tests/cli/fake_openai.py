"""A server of the OpenAI protocol whose answers come at times that a test sets."""

import http.server
import json
import socketserver
import threading
import time


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json"):
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        pages = {"/health": {"status": "ok"},
                 "/v1/models": {"data": [{"id": "fake", "max_model_len": self.server.context}]}}
        key = self.server.key
        if key and self.path != "/health" and self.headers["Authorization"] != f"Bearer {key}":
            return self.answer(401, {"error": {"message": "no key"}})
        if self.path in pages:
            return self.answer(200, pages[self.path])
        return self.answer(404, {"error": {"message": "no such page"}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/tokenize" and self.server.tokenizes:
            return self.answer(200, {"tokens": list(range(len(body["content"].split())))})
        if not self.path.endswith("/completions"):
            return self.answer(404, {"error": {"message": "no such page"}})
        with self.server.lock:
            number = len(self.server.bodies)
            self.server.bodies.append(body)
            self.server.headers.append(dict(self.headers))
        try:
            self.stream(self.server.script(number, body), body)
        except (BrokenPipeError, ConnectionResetError):
            with self.server.lock:
                self.server.lost += 1

    def event(self, data):
        self.chunk(f"data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode())

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def stream(self, script, body):
        if "status" in script:
            return self.answer(script["status"], {"error": {"message": "as the test says"}})
        if "page" in script:
            return self.answer(200, script["page"], "text/html")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.chunk(b": waiting\n\n")
        while "endless" in script:
            self.event(script["endless"])
        tokens = script.get("tokens", body["max_tokens"])
        for i in range(tokens):
            time.sleep(script.get("first" if i == 0 else "gap", 0))
            if i == script.get("cut"):
                self.close_connection = True
                return None
            if i == script.get("fail"):
                self.event({"error": {"message": "the engine stopped"}})
                break
            delta = {"delta": {"content": f"w{i} "}} if "messages" in body else {"text": f"w{i} "}
            self.event({"choices": [{"index": 0, **delta}]})
        text = body.get("prompt") or " ".join(each["content"] for each in body["messages"])
        prompt = len(text.split())
        usage = {"prompt_tokens": prompt, "completion_tokens": tokens,
                 "prompt_tokens_details": {"cached_tokens": script.get("cached", 0)}}
        self.event({"choices": [], "usage": script.get("usage", usage)})
        self.event("[DONE]")
        if "hold" in script:
            self.close_connection = True
            return self.server.closing.wait(script["hold"])
        self.wfile.write(b"0\r\n\r\n")
        return None


class FakeServer(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """`script(number, body)` says how the number-th answer goes: seconds until its `first` token
    and the `gap` to every other, `tokens`, `cached` or all of `usage`, and for how long to `hold`
    the connection behind the answer; an HTTP `status`, a `page` or `endless` events of that data
    instead; or the token before which the connection is `cut` or the answer has to `fail`. Pages
    need the `key`."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, script=lambda number, body: {}, tokenizes=True, context=4096, key=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.script, self.tokenizes, self.context, self.key = script, tokenizes, context, key
        self.lock, self.bodies, self.headers, self.lost = threading.Lock(), [], [], 0
        self.closing = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"
