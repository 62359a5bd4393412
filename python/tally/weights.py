"""Trained weights: read from a safetensors file, and loaded into the module that was exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import TallyError

if TYPE_CHECKING:
    import torch

TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
MOST = 100_000_000  # bytes of a header: what safetensors itself allows


def read_safetensors(path: str | Path) -> dict[str, np.ndarray[Any, Any]]:
    """Returns the tensors of a file by name. They are views of one buffer."""
    data = Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(len(data) - 8, MOST):
        raise TallyError(f"{path} is no safetensors file")
    header, body, out = json.loads(data[8 : 8 + size]), memoryview(data)[8 + size :], {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        if entry["dtype"] not in TYPES or not 0 <= begin <= end <= len(body):
            raise TallyError(f"{path}: tensor {name} is {entry['dtype']} at {begin}–{end} of {len(body)} bytes")
        out[name] = np.frombuffer(body[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return out


def load(module: torch.nn.Module, path: str | Path) -> list[str]:
    """Loads weights and running statistics into a module, in place, and returns their names in its state_dict.

    A tied weight is in the file under one of its names. What the graph did not use stays as it was.
    """
    import torch

    trained, own = read_safetensors(path), module.state_dict()
    found = {name: trained[name] for name in own if name in trained}
    places = {own[name].data_ptr() for name in found}  # which a tied weight shares
    missing = [name for name, weight in module.named_parameters() if weight.requires_grad and weight.data_ptr() not in places]
    unknown = sorted(trained.keys() - own.keys() - {name for name, _ in module.named_buffers()})
    if not found or unknown and missing:
        raise TallyError(f"{path} holds {(unknown or list(trained))[:5]}, which are no weights of {type(module).__name__}", "load it into the module that was exported, or one of the same class and sizes")
    for name, value in found.items():
        if tuple(value.shape) != tuple(own[name].shape):
            raise TallyError(f"{path}: {name} is {list(value.shape)}, and the module's is {list(own[name].shape)}")
    module.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in found.items()}, strict=False)
    return list(found)
