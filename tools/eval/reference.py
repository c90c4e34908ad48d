"""Float32 forward pass of the llama and gemma3 architectures, read from GGUF.

It shares nothing with Strata: the `gguf` package dequantizes the weights, NumPy does the rest, and
every sequence is computed whole, without cache, batching or activation quantization.
"""

import dataclasses
import math

import gguf
import numpy as np

HEAD_ROWS = 64  # positions whose logits are held at a time


@dataclasses.dataclass(frozen=True)
class Attention:
    """What distinguishes one layer's attention: its rotary frequencies and its window."""

    frequencies: np.ndarray  # radians per position, one for each rotated pair
    window: int | None  # a token sees itself and window - 1 tokens before it


class GGUF:
    """Metadata and dequantized tensors of one file."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = {name: field.contents() for name, field in reader.fields.items()
                       if not name.startswith("tokenizer.")}
        self.architecture = self.fields["general.architecture"]
        self.tensors = {tensor.name: tensor for tensor in reader.tensors}

    def get(self, name, default=None):
        value = self.fields.get(f"{self.architecture}.{name}", default)
        if value is None:
            raise ValueError(f"the file has no {self.architecture}.{name}")
        return value

    def tensor(self, name):
        tensor = self.tensors[name]
        values = gguf.dequantize(tensor.data, tensor.tensor_type)
        return np.ascontiguousarray(values.reshape(tensor.shape[::-1]), np.float32)


class Model:
    """Weights in float32 and the hyper-parameters that the forward pass needs."""

    def __init__(self, path):
        file = GGUF(path)
        if file.architecture not in ("llama", "gemma3"):
            raise ValueError(f"no reference for the architecture {file.architecture}")
        if file.get("expert_count", 0):
            raise ValueError("no reference for mixtures of experts")
        self.gemma = file.architecture == "gemma3"
        self.width = file.get("embedding_length")
        self.heads = file.get("attention.head_count")
        self.kv_heads = file.get("attention.head_count_kv", self.heads)
        self.head_dim = file.get("attention.key_length", self.width // self.heads)
        self.epsilon = np.float32(file.get("attention.layer_norm_rms_epsilon"))
        self.weights = {name: file.tensor(name) for name in file.tensors}
        self.attention = [self._attention(file, layer)
                          for layer in range(file.get("block_count"))]

    def _attention(self, file, layer):
        rotated = file.get("rope.dimension_count", self.head_dim)
        base, scale, window = file.get("rope.freq_base", 10000.0), 1.0, None
        if file.get("rope.scaling.type", "none") == "linear":
            scale = 1.0 / file.get("rope.scaling.factor")
        if self.gemma and layer % 6 != 5:  # five local layers, then a global one
            base, scale = file.get("rope.freq_base_swa", 10000.0), 1.0
            window = file.get("attention.sliding_window")
        frequencies = scale * base ** (-np.arange(0, rotated, 2, dtype=np.float64) / rotated)
        if "rope_freqs.weight" in self.weights:
            frequencies = frequencies / self.weights["rope_freqs.weight"]
        return Attention(frequencies, window)

    @property
    def vocabulary(self):
        return self.weights["token_embd.weight"].shape[0]

    def logits_into(self, tokens, out):
        """Writes the logits after each of `tokens` to `out` [tokens, vocabulary]."""
        state = self.weights["token_embd.weight"][np.asarray(tokens)]
        if self.gemma:
            state = state * np.float32(math.sqrt(self.width))
        for layer in range(len(self.attention)):
            state = self._layer(layer, state)
        state = self._norm(state, "output_norm.weight")
        head = self.weights.get("output.weight", self.weights["token_embd.weight"])
        for start in range(0, len(tokens), HEAD_ROWS):
            out[start:start + HEAD_ROWS] = state[start:start + HEAD_ROWS] @ head.T

    def _layer(self, layer, state):
        prefix = f"blk.{layer}."
        mixed = self._attend(layer, self._norm(state, prefix + "attn_norm.weight"))
        if self.gemma:
            mixed = self._norm(mixed, prefix + "post_attention_norm.weight")
        state = state + mixed
        fed = self._feed_forward(prefix, self._norm(state, prefix + "ffn_norm.weight"))
        if self.gemma:
            fed = self._norm(fed, prefix + "post_ffw_norm.weight")
        return state + fed

    def _attend(self, layer, x):
        prefix, attention, count = f"blk.{layer}.", self.attention[layer], len(x)
        q = self._linear(x, prefix + "attn_q").reshape(count, self.heads, self.head_dim)
        k = self._linear(x, prefix + "attn_k").reshape(count, self.kv_heads, self.head_dim)
        v = self._linear(x, prefix + "attn_v").reshape(count, self.kv_heads, -1)
        if self.gemma:
            q = self._norm(q, prefix + "attn_q_norm.weight")
            k = self._norm(k, prefix + "attn_k_norm.weight")
        q, k = self._rotate(q, attention.frequencies), self._rotate(k, attention.frequencies)
        distance = np.arange(count)[:, None] - np.arange(count)[None, :]
        hidden = distance < 0
        if attention.window is not None:
            hidden |= distance >= attention.window
        group = self.heads // self.kv_heads
        mixed = np.empty((count, self.heads, v.shape[-1]), np.float32)
        for head in range(self.heads):
            scores = q[:, head] @ k[:, head // group].T * np.float32(self.head_dim ** -0.5)
            scores[hidden] = -np.inf
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            mixed[:, head] = weights @ v[:, head // group]
        return self._linear(mixed.reshape(count, -1), prefix + "attn_output")

    def _feed_forward(self, prefix, x):
        gate = self._linear(x, prefix + "ffn_gate")
        activate = gelu if self.gemma else silu
        return self._linear(activate(gate) * self._linear(x, prefix + "ffn_up"),
                            prefix + "ffn_down")

    def _linear(self, x, name):
        y = x @ self.weights[name + ".weight"].T
        return y + self.weights[name + ".bias"] if name + ".bias" in self.weights else y

    def _norm(self, x, name):
        mean_square = np.mean(np.square(x), axis=-1, keepdims=True)
        return x / np.sqrt(mean_square + self.epsilon) * self.weights[name]

    def _rotate(self, x, frequencies):
        """Turns pairs of x [tokens, heads, head_dim] by angles that grow with the position."""
        angles = np.arange(len(x))[:, None, None] * frequencies
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        pairs = len(frequencies)
        # GGUF orders llama's Q and K so that neighbours pair up; gemma3 pairs across the halves.
        first = np.s_[..., :pairs] if self.gemma else np.s_[..., 0:2 * pairs:2]
        second = np.s_[..., pairs:2 * pairs] if self.gemma else np.s_[..., 1:2 * pairs:2]
        turned = x.copy()
        turned[first] = x[first] * cos - x[second] * sin
        turned[second] = x[first] * sin + x[second] * cos
        return turned


def silu(x):
    with np.errstate(over="ignore"):  # exp(-x) may become infinite: the quotient is then zero
        return x / (np.float32(1) + np.exp(-x))


def gelu(x):
    inner = np.float32(math.sqrt(2 / math.pi)) * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + np.tanh(inner))
