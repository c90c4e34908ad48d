#!/usr/bin/env python3
"""Measures what serving costs, and how a peer serves: for each number of users, in turn and several
times over, the engine in its own process, strata serve, and a peer's server of the OpenAI protocol,
on the same prompts. Prints one JSON object for bench/results; tools/results_table.py shows it."""

import argparse
import contextlib
import datetime
import json
import statistics
import subprocess
import sys
import time
import urllib.request

PEER_PORT = 18231
SPARE_TOKENS = 64  # of a context, for what a template adds


class Failure(Exception):
    """A program that did not do what it was asked to."""


def run_json(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def peer_server(options, users, context):
    """llama-server, or what takes its options, with its URL."""
    command = [options.peer, "-m", options.model, "-np", str(users), "-c", str(users * context),
               "-t", str(options.threads), "--port", str(PEER_PORT), *options.peer_args.split()]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{PEER_PORT}"
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise Failure(f"{' '.join(command)} ended with {process.returncode}")
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/health", timeout=5).close()
                break
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def in_process(options, users):
    return run_json(options.program, "bench", options.model, "-p", "0", "-n", str(options.answer),
                    "--batch", str(users), "--batch-depth", str(options.prompt), "-r", "1",
                    "-t", str(options.threads), "--json")


def load(options, target, *arguments):
    return run_json(options.program, "bench", "serve", *target, "--ignore-eos", "--endpoint",
                    "completions", "--json", *arguments)


def own_target(options, users, context):
    return ["--model", options.model, "--serve-args",
            f"-t {options.threads} --parallel {users} --sequences {users} -c {context}"]


def serve_both(options, users, context, *arguments):
    """The loads of Strata and of the peer, which is None without one."""
    own = load(options, own_target(options, users, context), *arguments)
    if not options.peer:
        return own, None
    with peer_server(options, users, context) as url:
        return own, load(options, [url], *arguments)


def measure_users(options, users):
    context = options.prompt + options.answer + SPARE_TOKENS
    row = {"users": users, "in_process": [], "served": [], "answers": [], "peer_answers": []}
    for _ in range(options.rounds):
        engine = in_process(options, users)
        batch = next(r for r in engine["rows"] if r["batched"])
        row["in_process"].append(batch["tokens_per_second"]["median"])
        own, peer = serve_both(options, users, context, "-u", str(users), "-r", str(users),
                               "-p", str(options.prompt), "-n", str(options.answer))
        row["served"].append(own["full_load"]["tokens_per_second"])
        row["answers"].append(own["answer_tokens_per_second"])
        if peer:
            row["peer_answers"].append(peer["answer_tokens_per_second"])
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row, engine


def first_tokens(result):
    """Of the burst; of all where there is nothing else."""
    groups = {group["group"]: group for group in result["groups"]}
    return groups.get("burst", result["total"])["ttft_ms"]["p95"]


def measure_burst(options):
    """Prompts that come at once, alone and beside four streams: when 95 % of them have a first
    token."""
    out = {"prompts": options.burst, "alone_ttft_p95_ms": [], "peer_alone_ttft_p95_ms": [],
           "ttft_p95_ms": [], "peer_ttft_p95_ms": [], "itl_p99_ms": [], "steady_itl_p99_ms": []}
    users, context = options.burst + 4, 1024 + SPARE_TOKENS
    for _ in range(options.rounds):
        own, peer = serve_both(options, users, context, "-u", str(options.burst), "-r",
                               str(options.burst), "-p", str(options.prompt), "-n", "1")
        out["alone_ttft_p95_ms"].append(first_tokens(own))
        if peer:
            out["peer_alone_ttft_p95_ms"].append(first_tokens(peer))
        own, peer = serve_both(options, users, context, "-u", "4", "-p", "32", "-n", "900",
                               "--burst", str(options.burst), "--burst-after", "3",
                               "--burst-prompt", str(options.prompt), "--burst-answer", "1")
        out["ttft_p95_ms"].append(first_tokens(own))
        out["steady_itl_p99_ms"].append(own["steady_itl_ms"]["before"]["p99"])
        out["itl_p99_ms"].append(own["steady_itl_ms"]["prompts"]["p99"])
        if peer:
            out["peer_ttft_p95_ms"].append(first_tokens(peer))
    print(json.dumps(out), file=sys.stderr, flush=True)
    return out


def measure_delivery(options):
    """What streams cost an engine that emits 50,000 tokens/s, with delivery_bench of the preset
    bench: tokens/s with nobody to send to and with so many streams."""
    rounds = {}
    for _ in range(options.rounds):
        done = run_json(options.delivery, "--benchmark_format=json", "--benchmark_min_time=3")
        for one in done["benchmarks"]:
            if "error_message" in one:
                raise Failure(f"{one['name']}: {one['error_message']}")
            rounds.setdefault(int(one["name"].split("/")[1]), []).append(one)
    rows = []
    for streams, runs in sorted(rounds.items()):
        loss = [run["loss_%"] for run in runs]
        rows.append({"streams": streams, "loss_percent": statistics.median(loss),
                     "tokens_per_second": statistics.median(run["tokens/s"] for run in runs),
                     "rounds": {"loss_percent": loss}})
    return rows


def medians(row):
    return {name: statistics.median(value) if isinstance(value, list) and value else value
            for name, value in row.items() if value != []}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--program", default="build/strata")
    parser.add_argument("--peer", help="llama-server")
    parser.add_argument("--peer-name", default="llama-server")
    parser.add_argument("--peer-args", default="-fa on --no-webui", help="more of its options")
    parser.add_argument("--delivery", help="delivery_bench of the preset bench, to run it too")
    parser.add_argument("--users", type=int, nargs="+", default=[1, 4, 8, 16, 32])
    parser.add_argument("--burst", type=int, default=50, help="prompts at once; 0: no burst")
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--answer", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    try:
        rows = [measure_users(options, users) for users in options.users]
        engine = rows[-1][1]
        burst = measure_burst(options) if options.burst else None
        delivery = measure_delivery(options) if options.delivery else None
    except (Failure, OSError, ValueError) as error:
        print(f"serve_results: {error}", file=sys.stderr)
        return 1
    settings = {"prompt": options.prompt, "answer": options.answer, "rounds": options.rounds,
                "peer": {"name": options.peer_name, "arguments": options.peer_args}}
    print(json.dumps({
        "kind": "serve", "strata": engine["strata"],
        "date": datetime.date.today().isoformat(), "machine": engine["machine"],
        "model": {"file": engine["model"]["file"]}, "settings": settings,
        "rows": [{**medians(row), "rounds": row} for row, _ in rows],
        "burst": burst and {**medians(burst), "rounds": burst}, "delivery": delivery}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
