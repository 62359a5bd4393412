"""Gives the light models of ONNX's backend tests weights to compute with.

    fill.py LIGHT OUT

reads LIGHT/light_NAME.onnx, whose weights are shapes filled with one number, and
writes OUT/NAME.onnx with random ones of the usual size: a zero or a constant
everywhere would not cost what real weights do.
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper


def weights(shape, random):
    if len(shape) > 1:
        return random.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))
    return np.abs(1 + 0.1 * random.standard_normal(shape))  # scales and variances are positive


def fill(model):
    random = np.random.default_rng(1)
    graph = model.graph
    shapes = {i.name: numpy_helper.to_array(i) for i in graph.initializer}
    kept, filled = [], []
    for node in graph.node:
        if node.op_type == "ConstantOfShape" and node.input[0] in shapes:
            shape = tuple(map(int, shapes[node.input[0]]))
            filled.append(numpy_helper.from_array(weights(shape, random).astype(np.float32), node.output[0]))
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)
    graph.initializer.extend(filled)


def main():
    light, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for source in sorted(light.glob("light_*.onnx")):
        model = onnx.load(source)
        fill(model)
        onnx.save(model, out / source.name.removeprefix("light_"))


if __name__ == "__main__":
    main()
