"""The token windows that every engine is compared on."""

import json
import pathlib

import llama_cpp

WINDOW = 1024  # longer than gemma3's 512, so that its sliding window slides
SHORTEST = 256
LICENSES = pathlib.Path("/usr/share/common-licenses")
# Licences are text that every model has seen; the prose beside this file is text that none has.
SOURCES = [(LICENSES / "GPL-3", 2), (LICENSES / "Artistic", 1),
           (pathlib.Path(__file__).with_name("prose.txt"), 2)]


def make(model_path):
    """Returns [{"source": name, "tokens": [...]}], BOS first where the model asks for it."""
    model = llama_cpp.Llama(str(model_path), vocab_only=True, verbose=False)
    vocabulary = llama_cpp.llama_model_get_vocab(model.model)
    start = []
    if llama_cpp.llama_vocab_get_add_bos(vocabulary):
        start = [llama_cpp.llama_vocab_bos(vocabulary)]
    step = WINDOW - len(start)
    windows = []
    for path, count in SOURCES:
        tokens = model.tokenize(path.read_bytes(), add_bos=False, special=False)
        for first in range(0, count * step, step):
            piece = tokens[first:first + step]
            if len(piece) >= SHORTEST:
                windows.append({"source": path.stem, "tokens": start + piece})
    return windows


def load_or_make(model_path, folder):
    """Keeps the windows in `folder`: windows.json, and N.tokens with the ids of window N."""
    saved = folder / "windows.json"
    if not saved.exists():
        windows = make(model_path)
        for number, window in enumerate(windows):
            text = " ".join(map(str, window["tokens"])) + "\n"
            (folder / f"{number}.tokens").write_text(text)
        saved.write_text(json.dumps(windows))
    return json.loads(saved.read_text())
