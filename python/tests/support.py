"""What several tests write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def stored(header: Mapping[str, object], body: bytes) -> bytes:
    """Returns a safetensors file of a header and a body."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray[Any, Any]]) -> Path:
    header, body = {}, b""
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(body), len(body) + value.nbytes]}
        body += value.tobytes()
    path.write_bytes(stored(header, body))
    return path
