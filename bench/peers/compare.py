"""Runs `tally bench engine` and its rivals in turn, and tells how much faster Tally is.

    compare.py --tally bin/tally [--models DIR] [--only PART] [--rounds 7] [--markdown FILE] [--json FILE]

Each round measures Tally and every rival once, in an order that turns round. A ratio is
that of one round, above 1 where Tally is faster; what is shown is the median of all rounds
and their quartiles. The rival that is fastest counts. A row is slower only if its upper
quartile is below 1.
"""

import argparse
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import rounds

WORKS = pathlib.Path(__file__).with_name("works.py")


@functools.cache
def blas():
    """NumPy as it comes, and with each choice of kernels that the processor has."""
    vectors = rounds.machine()["vectors"]
    kinds = {"AVX-512": ("SkylakeX", "Haswell"), "AVX2": ("Haswell",)}.get(vectors, ())
    return [("NumPy", {})] + [(f"NumPy, {k}", {"OPENBLAS_CORETYPE": k}) for k in kinds]


def torch(*more):
    """PyTorch in each way that it can run here; the environment says how works.py does it."""
    found = [("PyTorch, eager", {"WAY": "eager"}), *more]
    if shutil.which("c++") or shutil.which("g++") or shutil.which("clang++"):
        found.append(("PyTorch, compiled", {"WAY": "compiled"}))
    else:
        print("no C++ compiler: torch.compile is left out (apt-get install g++)", file=sys.stderr)
    return found


def rivals(name):
    """What stands against a row, as [(label, environment)], or another row of ours."""
    if name in rounds.NARROW:
        return "gemm/fp32/1024"
    if name in rounds.GEMM + rounds.BATCHED or name == "gemv/changing/4096":
        return blas()
    if name == "gemv/fp32/4096":
        return [("reading alone", {})]
    if name == "root/sha256":
        return [("SHA-256 of as many cores", {})]
    if name in rounds.CSV:
        return [("pandas", {})]
    if name == "train/gpt/tokens_per_s":
        return [*torch(("PyTorch, SDPA, fused", {"WAY": "fused"})), ("JAX", {"WAY": "jax"})]
    if name.startswith("train/"):
        return torch()
    return [("onnxruntime", {})]


class Rival:
    """A process of works.py with one setting."""

    def __init__(self, options, label, threads, environment):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}
        env |= {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
        env |= {"NPROC": str(threads), "JAX_PLATFORMS": "cpu", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        python = options.torch if label.startswith("PyTorch") else sys.executable
        self.label, self.measured = label, []
        self.process = subprocess.Popen(
            [python, WORKS, str(threads), options.models], env=env | environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if options.quiet else None, text=True,
        )  # fmt: skip

    def measure(self, row):
        print(row, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise LookupError(f"{self.label} ended in {row}: run again with --verbose")
        self.measured.append(json.loads(line))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Own:
    """Another row of ours as the rival."""

    def __init__(self, options, row):
        self.label, self.measured, self.options, self.row = "our " + row.split("/")[1], [], options, row

    def measure(self, row):
        self.measured.append(rounds.tally(self.options.tally, f"{self.row}/t{row[-1]}", self.options.models))

    def close(self):
        pass


def compare(options, name, threads):
    row = f"{name}/t{threads}"
    against = rivals(name)
    others = [Own(options, against)] if isinstance(against, str) else [Rival(options, label, threads, env) for label, env in against]
    ours = []
    turn = [lambda: ours.append(rounds.tally(options.tally, row, options.models))]
    turn += [functools.partial(rival.measure, row) for rival in others]
    try:
        for i in range(options.rounds):
            for do in turn if i % 2 == 0 else reversed(turn):
                do()
    finally:
        for rival in others:
            rival.close()
    unit = ours[0]["unit"]
    out = {"name": row, "unit": unit, "value": rounds.spread([r["value"] for r in ours]), "rivals": {}}
    for rival in others:
        ratios = [rounds.faster(unit, a["value"], b["value"]) for a, b in zip(ours, rival.measured)]
        out["rivals"][rival.label] = {
            "value": rounds.spread([r["value"] for r in rival.measured]), "ratio": rounds.spread(ratios),
            "memory_mb": max(r["memory"] or 0 for r in rival.measured),
        }  # fmt: skip
    best = min(out["rivals"], key=lambda label: out["rivals"][label]["ratio"]["median"])
    out["best"], out["ratio"] = best, out["rivals"][best]["ratio"]
    out["verdict"] = rounds.verdict(out["ratio"])
    if ours[0]["memory"]:
        out["memory_mb"] = max(r["memory"] for r in ours)
    return out


def show(r):
    lines = [f"{r['name']:38} {r['value']['median']:9.4g} {r['unit']:9} {rounds.text(r['ratio'])} of {r['best']}: {r['verdict']}"]
    if len(r["rivals"]) > 1:
        lines += [f"    {label:34} {x['value']['median']:9.4g} {'':9} {rounds.text(x['ratio'])}" for label, x in r["rivals"].items()]
    if r.get("memory_mb"):
        lines.append(f"    peak memory {r['memory_mb']:.0f} MB, {r['best']} {r['rivals'][r['best']]['memory_mb']:.0f} MB")
    return "\n".join(lines)


def markdown(options, found):
    """A table with one and two threads in a row."""
    m = rounds.machine()
    by = {}
    for r in found:
        name, _, threads = r["name"].rpartition("/t")
        by.setdefault(name, {})[threads] = r
    lines = [
        f"{options.rounds} rounds on {m['cores']} cores of {m['processor']} ({m['vectors']}); ratios are medians, with quartiles.", "",
        "| row | unit | one thread | two | fastest rival | ratio, one thread | two |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, r in by.items():
        one, two = r.get("1"), r.get("2")
        cell = lambda x, do: do(x) if x else ""
        best = " / ".join(dict.fromkeys(x["best"] for x in (one, two) if x))
        lines.append("| " + " | ".join([
            f"`{name}`", (one or two)["unit"], cell(one, lambda x: f"{x['value']['median']:.4g}"), cell(two, lambda x: f"{x['value']['median']:.4g}"),
            best, cell(one, lambda x: rounds.text(x["ratio"])), cell(two, lambda x: rounds.text(x["ratio"])),
        ]) + " |")  # fmt: skip
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tally", default="bin/tally")
    p.add_argument("--torch", default=sys.executable, help="a Python with another PyTorch")
    p.add_argument("--models", default="", help="folder of models NAME.onnx")
    p.add_argument("--only", default="", help="only rows whose name has this part; several with commas")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--markdown", type=pathlib.Path, help="file for a table")
    p.add_argument("--json", type=pathlib.Path, help="file for all figures")
    p.add_argument("--verbose", dest="quiet", action="store_false", help="show what rivals write to standard error")
    options = p.parse_args()
    found, bad = [], 0
    for name in [n for n in rounds.ROWS if n != "train/demo/step_ms"] + rounds.models(options.models):
        for threads in (1, 2):
            if not any(part in f"{name}/t{threads}" for part in options.only.split(",")):
                continue
            try:
                found.append(compare(options, name, threads))
            except LookupError as err:
                print(err, file=sys.stderr, flush=True)
                bad += 1
                continue
            print(show(found[-1]), flush=True)
            if options.json:
                options.json.write_text(json.dumps({"machine": rounds.machine(), "rows": found}, indent=1))
            if options.markdown:
                options.markdown.write_text(markdown(options, found))
    if not found and not bad:
        sys.exit(f"no row's name has {options.only!r}")
    sys.exit(bad and 1)


if __name__ == "__main__":
    main()
