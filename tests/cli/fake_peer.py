#!/usr/bin/env python3
"""A llama-bench or, where -npl is given, a llama-batched-bench that computes nothing.

`--fake` makes it hostile: fail, hang, garbage, absurd, dead or other, a result of another test.
Every call adds its arguments as a line of JSON to the file of `--log`. By its file's name it is
old, without depths and JSON for batches, loud: help ends with 1, tables go to standard error, or
silent: it never tells how to call it.
"""

import argparse
import json
import os
import sys
import time

NAME = os.path.basename(sys.argv[0])
HELP = "-gp <pp,tg>" if "old" in NAME else "-d, --n-depth\n--output-format FORMAT"
LOUD = "loud" in NAME


def arguments():
    parser = argparse.ArgumentParser(add_help=False)
    for name in ("-m", "-o", "-gp", "--fake", "--log", "--output-format"):
        parser.add_argument(name)
    for name in ("-p", "-n", "-d", "-r", "-t", "-b", "-ub", "-c", "-npp", "-ntg", "-npl"):
        parser.add_argument(name, type=int)
    return parser.parse_args()


def single(given):
    prompt, generated = map(int, given.gp.split(",")) if given.gp else (given.p, given.n)
    if given.fake == "other":
        generated += 1
    speed = {"absurd": 1e300, "dead": 1e-300}.get(given.fake, 100.5)
    result = {"n_prompt": prompt, "n_gen": generated, "avg_ts": speed}
    if not given.gp:
        result["n_depth"] = given.d or 0
    print(json.dumps([result]))


def batched(given):
    if given.output_format and not LOUD:
        print(json.dumps({"pp": given.npp, "tg": given.ntg, "pl": given.npl, "speed_tg": 50}))
    else:
        print(f"| {given.npp} | {given.ntg} | {given.npl} | 9 | 1 | 1 | 1 | 40.25 | 1 | 1 |",
              file=sys.stderr if LOUD else sys.stdout)


def main():
    if "--help" in sys.argv:
        if "silent" in NAME:
            time.sleep(1000)
        print(HELP)
        return 1 if LOUD else 0
    given = arguments()
    if given.log:
        with open(given.log, "a", encoding="utf-8") as log:
            log.write(json.dumps(sys.argv[1:]) + "\n")
    if given.fake == "fail":
        print("cannot load the model", file=sys.stderr)
        return 3
    if given.fake == "hang":
        time.sleep(1000)
    if given.fake == "garbage":
        print("[{\x1b[31m")
        return 0
    (batched if given.npl else single)(given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
