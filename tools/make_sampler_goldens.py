#!/usr/bin/env python3
"""Writes src/sample/testdata/distributions.txt: what is left of logits after all sampling stages.

Needs numpy. Straight from the definitions, in double precision, over full sorts and plain loops;
shares no code with src/sample/. A case is a block of lines: parameters by name, order, bias,
breakers, history, mu, logits, then "expect" with token and probability of all that may be drawn.
"""

import pathlib

import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "src/sample/testdata/distributions.txt"
ORDER = ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc",
         "temperature"]
OFF = dict(temperature=1.0, dynatemp_range=0.0, dynatemp_exponent=1.0, top_k=0, top_p=1.0,
           min_p=0.0, typical_p=1.0, top_n_sigma=0.0, xtc_probability=0.0, xtc_threshold=0.1,
           min_keep=0, repeat_penalty=1.0, repeat_last_n=64, presence_penalty=0.0,
           frequency_penalty=0.0, dry_multiplier=0.0, dry_base=1.75, dry_allowed_length=2,
           dry_penalty_last_n=-1, mirostat=0, mirostat_tau=5.0, mirostat_eta=0.1)


def last(history, count):
    if count < 0:
        return list(history)
    return list(history[len(history) - min(count, len(history)):])


def softmax(logits):
    """Probabilities by token, of a {token: logit}."""
    largest = max(logits.values())
    weights = {t: np.exp(l - largest) for t, l in logits.items()}
    total = sum(weights.values())
    return {t: w / total for t, w in weights.items()}


def best_first(logits):
    return sorted(logits, key=lambda t: (-logits[t], t))


def take(ranking, probabilities, target, least):
    """The first tokens of a ranking until their probabilities reach the target."""
    total, kept = 0.0, []
    for token in ranking:
        kept.append(token)
        total += probabilities[token]
        if total >= target and len(kept) >= least:
            break
    return kept


def penalties(logits, p, history, breakers):
    recent = last(history, p["repeat_last_n"])
    out = dict(logits)
    for token in set(recent) & set(out):
        l = out[token]
        l = l / p["repeat_penalty"] if l > 0 else l * p["repeat_penalty"]
        out[token] = l - p["presence_penalty"] - recent.count(token) * p["frequency_penalty"]
    return out


def since_breaker(tokens, breakers):
    for start in range(len(tokens) - 1, -1, -1):
        fitting = [len(b) for b in breakers if tokens[start:start + len(b)] == b]
        if fitting:
            return len(tokens) - start - max(fitting)
    return len(tokens)


def dry(logits, p, history, breakers):
    if p["dry_multiplier"] == 0:
        return logits
    tokens, allowed = last(history, p["dry_penalty_last_n"]), p["dry_allowed_length"]
    limit = since_breaker(tokens, breakers)
    longest = {}
    for i in range(1, len(tokens)):  # tokens[i] comes after an earlier stretch
        n = 0
        while n < i and tokens[i - 1 - n] == tokens[-1 - n]:
            n += 1
        longest[tokens[i]] = max(longest.get(tokens[i], 0), min(n, limit))
    out = dict(logits)
    for token, n in longest.items():
        if n >= allowed and [token] not in breakers and token in out:
            out[token] -= p["dry_multiplier"] * p["dry_base"] ** (n - allowed)
    return out


def top_n_sigma(logits, p, history, breakers):
    if p["top_n_sigma"] <= 0:
        return logits
    values = np.array(list(logits.values()))
    least = values.max() - p["top_n_sigma"] * values.std()
    return {t: l for t, l in logits.items() if l >= least}


def top_k(logits, p, history, breakers):
    return {t: logits[t] for t in best_first(logits)[:p["top_k"] or len(logits)]}


def top_p(logits, p, history, breakers):
    if p["top_p"] >= 1:
        return logits
    kept = take(best_first(logits), softmax(logits), p["top_p"], p["min_keep"])
    return {t: logits[t] for t in kept}


def typ_p(logits, p, history, breakers):
    if p["typical_p"] >= 1:
        return logits
    probabilities = softmax(logits)
    surprise = {t: -np.log(q) for t, q in probabilities.items()}
    entropy = sum(probabilities[t] * surprise[t] for t in logits)
    ranking = sorted(logits, key=lambda t: (abs(surprise[t] - entropy), t))
    kept = take(ranking, probabilities, p["typical_p"], p["min_keep"])
    return {t: logits[t] for t in kept}


def min_p(logits, p, history, breakers):
    if p["min_p"] <= 0:
        return logits
    probabilities, ranking = softmax(logits), best_first(logits)
    least = p["min_p"] * probabilities[ranking[0]]
    return {t: logits[t] for i, t in enumerate(ranking)
            if probabilities[t] >= least or i < p["min_keep"]}


def xtc(logits, p, history, breakers):
    assert p["xtc_probability"] in (0, 1), "a case must not depend on chance"
    if p["xtc_probability"] == 0:
        return logits
    probabilities, ranking = softmax(logits), best_first(logits)
    probable = sum(probabilities[t] >= p["xtc_threshold"] for t in ranking)
    if probable < 2 or len(ranking) - (probable - 1) < p["min_keep"]:
        return logits
    return {t: logits[t] for t in ranking[probable - 1:]}


def temperature(logits, p, history, breakers):
    t = p["temperature"]
    if p["dynatemp_range"] > 0 and len(logits) > 1:
        q = np.array(list(softmax(logits).values()))
        share = -(q * np.log(q)).sum() / np.log(len(q))
        low, high = max(0.0, t - p["dynatemp_range"]), t + p["dynatemp_range"]
        t = low + (high - low) * share ** p["dynatemp_exponent"]
    if t <= 0:
        return {best_first(logits)[0]: 0.0}
    return {token: l / t for token, l in logits.items()}


def mirostat(logits, mu):
    probabilities, ranking = softmax(logits), best_first(logits)
    kept = [t for i, t in enumerate(ranking) if -np.log2(probabilities[t]) <= mu or i == 0]
    return {t: logits[t] for t in kept}


def distribution(case):
    p, logits = case["params"], dict(enumerate(case["logits"]))
    for token, bias in case["bias"]:
        logits[token] += bias
    logits = {t: l for t, l in logits.items() if l != -np.inf}
    for stage in case["order"]:
        if p["mirostat"] == 0 or stage in ("penalties", "dry", "temperature"):
            logits = globals()[stage](logits, p, case["history"], case["breakers"])
    if p["mirostat"]:
        logits = mirostat(logits, case["mu"])
    return softmax(logits)


def f32(value):
    return float(np.float32(value))


def make(random, name, order=None, bias=(), breakers=(), mu=0.0, spread=2.0, history=None, **given):
    params = dict(OFF)
    params.update({k: f32(v) if isinstance(v, float) else v for k, v in given.items()})
    if history is None:
        history = random.integers(0, 6, random.integers(0, 60)).tolist()
    count = int(random.integers(2, 40))
    return dict(name=name, params=params, order=order or ORDER, bias=list(bias), mu=f32(mu),
                breakers=sorted(list(b) for b in breakers), history=history,
                logits=[f32(x) for x in random.normal(0, spread, count + 8)])


def combined(random, number):
    """Many stages at once, in the usual order or a random one."""
    pick = lambda values: values[int(random.integers(len(values)))]
    order = list(ORDER)
    if number % 2:
        random.shuffle(order)
        order = order[: int(random.integers(3, 10))]
    temperatures = [0.0, 0.7, 1.0, 1.6] if "temperature" in order else [1.0]
    return make(
        random, f"combined_{number}", order=order, spread=pick([0.5, 2.0, 5.0]),
        bias=pick([[], [(1, -np.inf)], [(0, 2.5), (3, -1.0)]]),
        breakers=pick([[], [[2]], [[1, 3], [1], [4, 4, 0]]]),
        temperature=pick(temperatures), dynatemp_range=pick([0.0, 0.5]),
        dynatemp_exponent=pick([1.0, 0.5, 2.0]), top_k=pick([0, 3, 12]),
        top_p=pick([1.0, 0.9, 0.6]), min_p=pick([0.0, 0.05, 0.3]),
        typical_p=pick([1.0, 0.9, 0.5]), top_n_sigma=pick([0.0, 1.0, 2.0]),
        xtc_probability=pick([0.0, 0.0, 1.0]), xtc_threshold=pick([0.05, 0.1, 0.3]),
        min_keep=pick([0, 2, 6]), repeat_penalty=pick([1.0, 1.3]), repeat_last_n=pick([-1, 8]),
        presence_penalty=pick([0.0, 0.7]), frequency_penalty=pick([0.0, 0.2]),
        dry_multiplier=pick([0.0, 0.8]), dry_allowed_length=pick([1, 2, 4]),
        dry_penalty_last_n=pick([-1, 20]))


def borders(random):
    """Cases in which one token lies close to a border, on either side."""
    for number, nudge in enumerate((-1e-3, 1e-3)):
        case = make(random, f"top_n_sigma_border_{number}")
        logits = np.array(case["logits"])
        distance = logits.max() - np.sort(logits)[-4]
        case["params"]["top_n_sigma"] = f32(distance / logits.std() * (1 + nudge))
        yield case
    for more in (0, 1):
        case = make(random, f"xtc_border_{more}", xtc_probability=1.0, xtc_threshold=0.05)
        probabilities = softmax(dict(enumerate(case["logits"])))
        probable = sum(p >= case["params"]["xtc_threshold"] for p in probabilities.values())
        assert probable > 1
        case["params"]["min_keep"] = int(len(probabilities) - (probable - 1) + more)
        yield case


def cases():
    random = np.random.default_rng(20)
    single = dict(
        nothing={}, penalties=dict(repeat_penalty=1.3, presence_penalty=0.5, frequency_penalty=0.1),
        top_n_sigma=dict(top_n_sigma=1.2), top_k=dict(top_k=5), typical=dict(typical_p=0.6),
        typical_keep=dict(typical_p=0.1, min_keep=7), top_p=dict(top_p=0.8),
        top_p_keep=dict(top_p=0.1, min_keep=4), min_p=dict(min_p=0.2),
        min_p_keep=dict(min_p=0.9, min_keep=4), xtc=dict(xtc_probability=1.0, xtc_threshold=0.08),
        xtc_keep=dict(xtc_probability=1.0, xtc_threshold=0.01, min_keep=30),
        temperature=dict(temperature=0.6), dynamic=dict(temperature=0.9, dynatemp_range=0.6),
        dynamic_exponent=dict(temperature=0.4, dynatemp_range=0.6, dynatemp_exponent=2.5))
    for name, given in single.items():
        for number in range(3):
            yield make(random, f"{name}_{number}", **given)
    phrase = [0, 1, 2, 3, 4, 5]
    stories = [phrase * 3, [1] * 30, [0, 1, 2, 9, 0, 1, 2], [3, 0, 1, 5, 3, 0, 1],
               [0, 1, 2, 3, 7, 1, 2, 3, 8, 0, 1, 2, 3], phrase + [7] + phrase[:5]]
    for number, story in enumerate(stories):
        for length, breakers in ((2, []), (1, [[2]]), (3, [[5, 3], [1]]), (2, [[0], [0, 1, 2]])):
            yield make(random, f"dry_{number}_{length}_{len(breakers)}", history=story,
                       breakers=breakers, dry_multiplier=0.8, dry_allowed_length=length)
    yield make(random, "dry_window", history=phrase * 3, dry_multiplier=1.5, dry_penalty_last_n=9)
    for number, mu in enumerate([0.0, 0.7, 2.0, 3.5, 10.0]):
        yield make(random, f"mirostat_{number}", mirostat=2, mirostat_tau=3.0, mu=mu, top_k=2,
                   temperature=0.8, repeat_penalty=1.2)
    for number in range(60):
        yield combined(random, number)
    yield from borders(random)


def main():
    lines = ["# Made by tools/make_sampler_goldens.py."]
    for case in cases():
        expected = distribution(case)
        lines.append("case " + case["name"])
        lines += [f"set {k} {v!r}" for k, v in case["params"].items() if v != OFF[k]]
        lines.append("order " + ";".join(case["order"]))
        lines += [f"bias {t} {b}" for t, b in case["bias"]]
        lines += ["breaker " + " ".join(map(str, b)) for b in case["breakers"]]
        lines.append("history " + " ".join(map(str, case["history"])))
        lines.append(f"mu {case['mu']!r}")
        lines.append("logits " + " ".join(f"{x:.9g}" for x in case["logits"]))
        lines.append("expect " + " ".join(f"{t} {expected[t]:.7g}" for t in sorted(expected)))
    OUT.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
