"""Kullback-Leibler divergence between the next-token distributions of two engines."""

import dataclasses

import numpy as np

CHUNK_ROWS = 16


@dataclasses.dataclass
class Divergence:
    """One entry for each position."""

    kl: np.ndarray  # KL(reference || other) in nats
    same_top: np.ndarray  # whether both prefer the same token


def log_softmax(logits):
    logits = logits.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return logits


def compare(reference, other):
    """Both are logits [positions, vocabulary]; every value must be finite."""
    if reference.shape != other.shape:
        raise ValueError(f"logits of shape {other.shape}, expected {reference.shape}")
    kl, same_top = [], []
    for start in range(0, len(reference), CHUNK_ROWS):
        p, q = reference[start:start + CHUNK_ROWS], other[start:start + CHUNK_ROWS]
        if not (np.isfinite(p).all() and np.isfinite(q).all()):
            raise ValueError(f"logits that are not finite at or after position {start}")
        same_top.append(p.argmax(axis=1) == q.argmax(axis=1))
        log_p, log_q = log_softmax(p), log_softmax(q)
        kl.append((np.exp(log_p) * (log_p - log_q)).sum(axis=1))
    return Divergence(np.concatenate(kl), np.concatenate(same_top))


def join(parts):
    return Divergence(np.concatenate([part.kl for part in parts]),
                      np.concatenate([part.same_top for part in parts]))


def ratio_interval(kl, baseline, resamples=2000):
    """Ratio of the means and its 90% bootstrap interval, positions drawn in pairs."""
    random = np.random.default_rng(0)
    picks = random.integers(0, len(kl), (resamples, len(kl)))
    ratios = kl[picks].mean(axis=1) / baseline[picks].mean(axis=1)
    return kl.mean() / baseline.mean(), *np.quantile(ratios, [0.05, 0.95])
