"""Logits of llama.cpp on the CPU, one window at a time."""

import llama_cpp


def version():
    return llama_cpp.__version__


def logits(model_path, windows):
    """Yields float32 [tokens, vocabulary] for each window; valid until the next one."""
    longest = max(len(window["tokens"]) for window in windows)
    # On the CPU llama.cpp's own default is flash attention; only this binding's differs.
    model = llama_cpp.Llama(str(model_path), n_ctx=longest, n_threads=2, n_threads_batch=2,
                            logits_all=True, flash_attn=True, verbose=False)
    for window in windows:
        model.reset()
        model.eval(window["tokens"])
        yield model.scores[:len(window["tokens"])]
