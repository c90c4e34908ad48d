"""A web server of a test, honest or not."""

import http.server
import re
import socket
import ssl
import threading

REASONS = {200: "OK", 206: "Partial Content", 302: "Found", 416: "Range Not Satisfiable"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = self.path.split("?")[0]
        with self.server.lock:
            self.server.requests.append((path, dict(self.headers)))
        page = self.server.pages.get(path)
        try:
            if page is None:
                self.answer(404, b"no such page")
            elif isinstance(page, bytes):
                self.serve(page)
            else:
                page(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def answer(self, status, body=b"", length=None, **headers):
        """Says `length` where the body has another."""
        self.send_response(status, REASONS.get(status, "Trouble"))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)
        if length is not None and length != len(body):
            self.close_connection = True

    def serve(self, body, etag='"1"', most=None, **headers):
        """As a server should, ranges included; but closes after `most` bytes."""
        start, status = 0, 200
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and self.headers.get("If-Range", etag) == etag:
            start, status = int(wanted.group(1)), 206
            headers["Content_Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        if start > len(body):
            return self.answer(416, Content_Range=f"bytes */{len(body)}")
        rest = body[start:]
        sent = rest if most is None else rest[:most]
        self.answer(status, sent, length=len(rest), ETag=etag, **headers)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, certificate=None):
        """With a certificate, a PEM file that holds its key too, the server speaks TLS."""
        super().__init__(("127.0.0.1", 0), Handler)
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True,
                                              do_handshake_on_connect=False)
        self.pages = {}  # path: bytes, or what to do with the handler
        self.requests = []  # (path, headers)
        self.lock = threading.Lock()
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, *_):
        pass

    def headers_of(self, path):
        return [headers for asked, headers in self.requests if asked == path]

    def close(self):
        self.shutdown()
        self.server_close()


def closed_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
