"""Runs two binaries of tally in turn, row by row, and tells how much faster the new one is.

    paired.py OLD NEW [--models DIR] [--only PART] [--rounds 7] [--json FILE]

Every other round begins with the new one. Shown are the median ratio and its quartiles:
a row is slower only if its upper quartile is below 1. It ends with an error if one is.
"""

import argparse
import json
import pathlib
import sys

import rounds


def pair(options, row):
    found = {options.old: [], options.new: []}
    for i in range(options.rounds):
        for binary in (options.old, options.new)[:: 1 if i % 2 == 0 else -1]:
            found[binary].append(rounds.tally(binary, row, options.models))
    old, new = found[options.old], found[options.new]
    unit = new[0]["unit"]
    ratio = rounds.spread([rounds.faster(unit, b["value"], a["value"]) for a, b in zip(old, new)])
    return {"name": row, "unit": unit, "old": rounds.spread([r["value"] for r in old]), "new": rounds.spread([r["value"] for r in new]),
            "ratio": ratio, "verdict": rounds.verdict(ratio)}  # fmt: skip


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("--models", default="")
    p.add_argument("--only", default="", help="only rows whose name has this part; several with commas")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--json", type=pathlib.Path, help="file for all figures")
    options = p.parse_args()
    found = []
    for name in rounds.ROWS + rounds.models(options.models):
        for row in (f"{name}/t1", f"{name}/t2"):
            if not any(part in row for part in options.only.split(",")):
                continue
            try:
                r = pair(options, row)
            except LookupError as err:  # one of them has no such row
                print(err, file=sys.stderr, flush=True)
                continue
            found.append(r)
            print(f"{row:38} {r['old']['median']:9.4g} → {r['new']['median']:9.4g} {r['unit']:9} {rounds.text(r['ratio'])}: {r['verdict']}", flush=True)
            if options.json:
                options.json.write_text(json.dumps({"machine": rounds.machine(), "rows": found}, indent=1))
    if not found:
        sys.exit(f"both have no row whose name has {options.only!r}")
    sys.exit(any(r["verdict"] == "slower" for r in found))


if __name__ == "__main__":
    main()
