"""Writes ggml.json: what the package gguf makes of blocks of every type.

    python3 ggml.py > ggml.json

Made with gguf 0.19.0 and numpy 2.4.6 (PyPI). Blocks follow from a formula that ../decode_test.go has
too: the bytes of SHA-256 of the type's name and a counter, with scales put over them. Scales are
counted through: block i has the finite float16 i, all 63488 of them, and i times a step where
there is a second. Types without scales have every value of 16 bits.
"""

import hashlib
import json

import gguf
import numpy as np

FINITE = np.array([h for h in range(1 << 16) if h & 0x7C00 != 0x7C00], dtype="<u2")
STEP = 40009  # prime
SHOWN = 2  # blocks whose values are written out

TYPES = {  # type: where its scales are
    "F32": [], "F16": [], "BF16": [],
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}


def blocks(name, size, scales):
    """One block a row. Those of 16-bit floats count through all values."""
    if name in ("F16", "BF16"):
        return np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(-1, 2)
    n = len(FINITE)
    stream = b"".join(hashlib.sha256(f"{name} {i}".encode()).digest() for i in range((n * size + 31) // 32))
    out = np.frombuffer(stream[: n * size], dtype=np.uint8).reshape(n, size).copy()
    for k, at in enumerate(scales):
        i = np.arange(n, dtype=np.int64)
        order = i if k == 0 else i * STEP % n
        out[:, at : at + 2] = FINITE[order].view(np.uint8).reshape(n, 2)
    return out


def combinations(rows):
    """How many pairs of scale and minimum each part of a block of Q4_K or Q5_K has."""
    scales, minima = gguf.quants.Q4_K.get_scale_min(rows[:, 4:16].copy())
    return min(len(np.unique(scales[:, p].astype(int) * 64 + minima[:, p])) for p in range(8))


out = {}
for name, scales in TYPES.items():
    kind = gguf.GGMLQuantizationType[name]
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows = blocks(name, size, scales)
    if name in ("Q4_K", "Q5_K"):
        assert combinations(rows) == 64 * 64, combinations(rows)
    values = gguf.quants.dequantize(rows, kind).astype("<f4").ravel()
    bits = values.view("<u4").copy()
    bits[np.isnan(values)] = 0x7FC00000
    at = len(rows) // 3 * elements  # scales that are no subnormals
    out[name] = {
        "number": int(kind), "elements": elements, "bytes": size,
        "values": bits[at : at + SHOWN * elements].tobytes().hex(),
        "digest": hashlib.sha256(bits.tobytes()).hexdigest(),
    }
print(json.dumps(out, indent=1))
