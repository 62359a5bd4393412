"""Paired rounds: what compare.py and paired.py share."""

import json
import os
import pathlib
import statistics
import subprocess

# The rows of `tally bench engine`, without their threads.
GEMM = [f"gemm/{kind}/{shape}" for kind in ("changing", "fp32") for shape in ("512", "1024", "2048", "16x4096x4096")]
BATCHED = ["gemm/batched/changing/64x128x64x128", "gemm/batched/64x128x64x128"]
GEMV = ["gemv/changing/4096", "gemv/fp32/4096"]
NARROW = ["gemm/mixed/1024", "gemm/int8/1024"]
TRAIN = ["train/gpt/tokens_per_s", "train/lenet/step_ms", "train/resnet/step_ms", "train/demo/step_ms"]
CSV = ["csv/integers", "csv/rounded", "csv/doubles", "csv/categories"]
ROWS = [*GEMM, *BATCHED, *GEMV, *NARROW, "root/sha256", *CSV, *TRAIN]

HIGHER = ("GFLOP/s", "GOP/s", "GB/s", "tokens/s")  # units in which more is better


def tally(binary, row, folder):
    """Measures a row of `tally bench engine`: its value, its unit, and the peak memory of a whole program in MB."""
    arguments = [binary, "bench", "engine", "--json", "--only", row]
    if row.startswith("infer/"):
        arguments += ["--models", folder]
    run = subprocess.run(arguments, capture_output=True, text=True)
    if run.returncode:
        said = run.stderr.strip().splitlines() or ["it has no such row"]
        raise LookupError(f"{binary}: {row}: {said[-1]}")
    rows = {r["name"]: r for r in json.loads(run.stdout)}
    memory = rows.get(row + "/memory")
    return {"value": rows[row]["value"], "unit": rows[row]["unit"], "memory": memory and memory["value"]}


def models(folder):
    """The rows of the models in a folder, without their threads."""
    return [f"infer/{m.stem}" for m in sorted(pathlib.Path(folder).glob("*.onnx"))] if folder else []


def faster(unit, a, b):
    """How much faster a is than b."""
    return a / b if unit in HIGHER else b / a


def spread(values):
    """Median, quartiles, least and most of what was measured."""
    values = sorted(values)
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {"median": middle, "low": low, "high": high, "min": values[0], "max": values[-1], "rounds": len(values)}


def verdict(ratio):
    """A row is slower or faster only beyond its quartiles."""
    return "slower" if ratio["high"] < 1 else "faster" if ratio["low"] > 1 else "equal"


def text(ratio):
    return f"{ratio['median']:.2f} ({ratio['low']:.2f}–{ratio['high']:.2f})"


def machine():
    """What the figures are of."""
    flags, model = "", "unknown processor"
    info = pathlib.Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            model = value.strip()
        elif key.strip() == "flags":
            flags = value
    vectors = next((name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if flag in flags.split()), "no AVX2")
    return {"processor": model, "cores": os.cpu_count(), "vectors": vectors, "load": os.getloadavg()[0]}
