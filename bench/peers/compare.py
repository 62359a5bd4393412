"""Runs `tally bench engine` and its peers in turn, and prints ratios of medians.

    compare.py --tally bin/tally --torch /usr/bin/python3 [--models DIR] [--only PART] [--rounds 3] [--json]

NumPy (OpenBLAS) and onnxruntime are those of the Python that runs this;
PyTorch's Python may be another. A ratio above 1 means that Tally is faster.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

WORKS = pathlib.Path(__file__).with_name("works.py")
HIGHER = ("GFLOP/s", "GOP/s", "GB/s", "tokens/s")  # units in which more is better

# Rows by how their peer is called; of several settings the best counts.
ROWS = [
    ("gemm/fp32/512", "blas"), ("gemm/fp32/1024", "blas"), ("gemm/fp32/2048", "blas"),
    ("gemm/fp32/16x4096x4096", "blas"), ("gemm/batched/64x128x64x128", "blas"), ("gemv/fp32/4096", "blas"),
    ("gemm/mixed/1024", "gemm/fp32/1024"), ("gemm/int8/1024", "gemm/fp32/1024"), ("root/sha256", "sha256"),
    ("train/gpt/tokens_per_s", "torch"), ("train/lenet/step_ms", "torch"), ("train/resnet/step_ms", "torch"),
]  # fmt: skip


class Peer:
    """A process of works.py with one setting of threads."""

    def __init__(self, python, threads, models, **environment):
        env = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads), **environment}
        self.process = subprocess.Popen(
            [python, WORKS, str(threads), models], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def measure(self, row):
        print(row, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the peer of {row} ended: see above")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def tally(options, row):
    arguments = [options.tally, "bench", "engine", "--json", "--only", row]
    if row.startswith("infer/"):
        arguments += ["--models", options.models]
    rows = json.loads(subprocess.run(arguments, check=True, capture_output=True, text=True).stdout)
    memory = [r["value"] for r in rows if r["name"] == row + "/memory"]
    return {"value": rows[0]["value"], "unit": rows[0]["unit"], "memory": memory[0] if memory else None}


def peers(options, kind, threads):
    if kind != "torch":
        return [Peer(sys.executable, threads, options.models)]
    return [
        Peer(options.torch, threads, options.models, TORCH_THREADS=str(torch))
        for torch in sorted({1, threads})
    ]  # fmt: skip


def compare(options, name, kind, threads):
    row = f"{name}/t{threads}"
    ours, theirs = [], []
    own = "/" in kind  # the peer is another row of ours
    others = [] if own else peers(options, kind, threads)
    for _ in range(options.rounds):
        ours.append(tally(options, row))
        if own:
            theirs.append([tally(options, f"{kind}/t{threads}")])
        else:
            theirs.append([p.measure(row) for p in others])
    for p in others:
        p.close()
    unit = ours[0]["unit"]
    better = max if unit in HIGHER else min
    middle = [statistics.median(r[i]["value"] for r in theirs) for i in range(len(theirs[0]))]
    best = better(middle)
    value = statistics.median(r["value"] for r in ours)
    out = {"name": row, "unit": unit, "value": value, "peer": kind, "peer_value": best}
    out["ratio"] = value / best if better is max else best / value
    if ours[0]["memory"]:
        out["memory_mb"] = statistics.median(r["memory"] for r in ours)
        out["peer_memory_mb"] = theirs[-1][middle.index(best)]["memory"]
    return out


def show(r):
    text = f"{r['name']:34} {r['value']:10.4g} {r['unit']:9} {r['peer']:14} {r['peer_value']:10.4g}   ratio {r['ratio']:.3f}"
    if r.get("peer_memory_mb"):
        text += f"   memory {r['memory_mb']:.0f} and {r['peer_memory_mb']:.0f} MB"
    return text


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tally", default="bin/tally")
    p.add_argument("--torch", default=sys.executable, help="a Python with PyTorch")
    p.add_argument("--models", default="", help="folder of models NAME.onnx")
    p.add_argument("--only", default="")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--json", action="store_true")
    options = p.parse_args()
    rows = list(ROWS)
    if options.models:
        rows += [(f"infer/{m.stem}", "onnxruntime") for m in sorted(pathlib.Path(options.models).glob("*.onnx"))]
    out = []
    for name, kind in rows:
        for threads in (1, 2):
            if options.only not in f"{name}/t{threads}":
                continue
            out.append(compare(options, name, kind, threads))
            if not options.json:
                print(show(out[-1]), flush=True)
    if options.json:
        json.dump(out, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
