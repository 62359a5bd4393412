"""Compares how fast files are read with the libraries that people use, on the same files, one thread each.

    formats.py TALLY FOLDER [--json FILE]

The folder is made if it is not there; it takes 1.6 GB. Every other time the libraries come first.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import digits

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

TABLES = ["integers", "rounded", "doubles", "categories"]
TARGETS = {"formats/tokens": 1.0, "formats/csv": 1.0, "formats/parquet": 0.3}
ROUNDS = 3


def best(do):
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        do()
        took.append(time.perf_counter() - begun)
    return min(took)


def tally(binary, folder):
    out = subprocess.run([binary, "bench", "formats", "--models", str(folder), "--json"], capture_output=True, text=True, env={**os.environ, "GOMAXPROCS": "1"})
    if out.returncode:
        sys.exit(out.stderr)
    return {r["name"]: r for r in json.loads(out.stdout)}


def peers(folder):
    import pandas
    import pyarrow
    import pyarrow.parquet
    import tokenizers

    pyarrow.set_cpu_count(1)
    found = {}
    lines = (folder / "text.txt").read_text().splitlines(keepends=True)
    size = sum(map(len, lines)) / 1e6
    t = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    found["formats/tokens"] = size / best(lambda: t.encode_batch(lines, add_special_tokens=False))
    for name in TABLES:
        csv, parquet = folder / f"{name}.csv", folder / f"{name}.parquet"
        found[f"formats/csv/{name}"] = csv.stat().st_size / 1e6 / best(lambda: pandas.read_csv(csv, engine="c"))
        found[f"formats/parquet/{name}"] = parquet.stat().st_size / 1e6 / best(lambda: pyarrow.parquet.read_table(parquet, use_threads=False))
    return found


def prepare(binary, folder):
    import pandas

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "tokenizer.json").exists():
        tally(binary, folder)
    if not (folder / "digits.json").exists():
        digits.main(binary, folder)
    for name in TABLES:
        if not (folder / f"{name}.parquet").exists():
            pandas.read_csv(folder / f"{name}.csv").to_parquet(folder / f"{name}.parquet")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("tally")
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--json", type=pathlib.Path, help="file for all figures")
    o = p.parse_args()
    prepare(o.tally, o.folder)
    ours, theirs = [], []
    for i in range(ROUNDS):
        for do in (lambda: ours.append(tally(o.tally, o.folder)), lambda: theirs.append(peers(o.folder)))[:: 1 if i % 2 == 0 else -1]:
            do()
    rows = []
    for name, r in ours[0].items():
        value = sorted(x[name]["value"] for x in ours)[ROUNDS // 2]
        row = {"name": name, "unit": r["unit"], "value": value}
        line = f"{name:28} {value:10.4g} {r['unit']}"
        if name in theirs[0]:
            other = sorted(x[name] for x in theirs)[ROUNDS // 2]
            ratios = sorted(a[name]["value"] / b[name] for a, b in zip(ours, theirs))
            target = next(v for k, v in TARGETS.items() if name.startswith(k))
            row |= {"peer": other, "ratio": ratios[ROUNDS // 2], "low": ratios[0], "high": ratios[-1], "target": target}
            line += f"   peer {other:8.4g}   ratio {ratios[ROUNDS // 2]:.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})   target {target}"
        elif "target" in r:
            row |= {"target": r["target"], "met": r["met"]}
            line += f"   target {r['target']}"
        rows.append(row)
        print(line, flush=True)
    if o.json:
        o.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
