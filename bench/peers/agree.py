"""Runs models by `tally run-onnx` and by onnxruntime, and tells how far their outputs lie apart.

    agree.py [--tally bin/tally] DIR|MODEL.onnx ...

An output's distance is the largest difference over the largest magnitude. It ends with
an error if one is above 1e-3, or if a model is refused.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from works import given

LIMIT = 1e-3


def theirs(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = given(session)
    return inputs, {o.name: y for o, y in zip(session.get_outputs(), session.run(None, inputs))}


def distance(path, tally):
    try:
        inputs, outputs = theirs(path)
    except Exception as e:  # onnxruntime has many of its own, and the next model shall be compared
        return None, f"onnxruntime says: {e}"
    with tempfile.TemporaryDirectory() as tmp:
        command = [tally, "run-onnx", path, "--out", tmp]
        for name, x in inputs.items():
            file = pathlib.Path(tmp, f"in-{name}.npy")
            np.save(file, x)
            command += ["--input", f"{name}={file}"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            return None, run.stderr.strip()
        far = 0.0
        for name, y in outputs.items():
            ours = np.load(pathlib.Path(tmp, f"{name}.npy"))
            if ours.shape != y.shape or ours.dtype != y.dtype:
                return None, f"{name} is {ours.dtype}{ours.shape}, not {y.dtype}{y.shape}"
            y, ours = y.astype(np.float64), ours.astype(np.float64)
            far = max(far, float(np.abs(y - ours).max() / max(np.abs(y).max(), 1e-30)))
        return far, ""


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tally", default="bin/tally")
    p.add_argument("paths", nargs="+", type=pathlib.Path)
    options = p.parse_args()
    bad = 0
    for path in options.paths:
        for model in sorted(path.glob("*.onnx")) if path.is_dir() else [path]:
            far, why = distance(model, options.tally)
            bad += far is None or not far <= LIMIT
            print(f"{model.stem:20} {'refused: ' + why if far is None else f'{far:.2e}'}", flush=True)
    sys.exit(bad and 1)


if __name__ == "__main__":
    main()
