"""Datasets of Python as records that an order names.

Call `read` for the columns of a dataset, and `write` for an `.npz` file of them. A column that an input of the module
is named for is what that input reads.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .errors import DataError

Array = np.ndarray[Any, Any]

TARGET = "target"  # the column to predict, where the dataset does not name it
TOKENS = "next-token-cross-entropy"  # the loss whose target is what the module reads, one token more
WITHOUT_TARGET = ("output", "contrastive")
HELD_OUT = "held_out"  # the column that says which records come from the validation set
LABELS = ("label", "labels", "target", "y")


@dataclass(frozen=True)
class Records:
    """Columns of as many records each, and which of them is to be predicted."""

    columns: Mapping[str, Array]
    inputs: tuple[str, ...]
    target: str | None
    reads: str | None = None  # the input that reads the target, all tokens but the last

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def example(self, batch: int) -> dict[str, Array]:
        """Returns a batch of what the module reads."""
        some = np.arange(batch) % len(self)
        out = {name: self.columns[name][some] for name in self.inputs if name != self.reads}
        if self.reads is not None and self.target is not None:
            out[self.reads] = self.columns[self.target][some, :-1]
        return out


def read(dataset: Any, takes: Sequence[str], loss: str = "", target: str | None = None) -> Records:
    """Returns the records of a dataset: arrays (X, y), a mapping of arrays, or a Dataset of PyTorch.

    `takes` names what the module's forward takes. Of a tuple the last part is the target, and the others are the inputs
    in that order; of a mapping the target is what is called `target`, or what no input is called.
    """
    if not takes:
        raise DataError("the module's forward takes no input by position", "give it one, as in forward(self, x)")
    whole = _whole(dataset)
    if isinstance(whole, Mapping):
        return _named({str(k): _array(v, str(k)) for k, v in whole.items()}, takes, loss, target)
    parts = [_array(v, f"part {i}") for i, v in enumerate(whole)]
    if loss == TOKENS and len(parts) == 1:
        return _checked(Records({"tokens": parts[0]}, (takes[0],), "tokens", takes[0]), loss)
    inputs = parts if loss in WITHOUT_TARGET else parts[:-1]
    if not inputs or len(inputs) > len(takes):
        raise DataError(f"records have {len(parts)} parts, and forward takes {list(takes)}", f"a target comes last; the loss {loss or 'of the order'} has {'none' if loss in WITHOUT_TARGET else 'one'}")
    columns = dict(zip(takes, inputs, strict=False))
    names = tuple(columns)
    label = None
    if len(inputs) < len(parts):
        label = target or (TARGET if TARGET not in columns else "label")
        columns[label] = parts[-1]
    return _checked(Records(columns, names, label), loss)


def _whole(dataset: Any) -> Mapping[Any, Any] | Sequence[Any]:
    """Returns all records of a dataset, part by part."""
    if isinstance(dataset, Mapping):
        return dataset
    if hasattr(dataset, "columns") and hasattr(dataset, "to_dict") and hasattr(dataset, "dtypes"):  # of pandas
        return {name: dataset[name] for name in dataset.columns}
    if isinstance(dataset, (tuple, list)) and dataset and all(hasattr(part, "shape") for part in dataset):
        return dataset
    if hasattr(dataset, "shape"):
        return (dataset,)
    if isinstance(getattr(dataset, "tensors", None), tuple):  # of a TensorDataset
        return tuple(dataset.tensors)
    if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
        raise DataError(f"{type(dataset).__name__} is no dataset", "give (X, y) arrays, a mapping of arrays, a Dataset with __len__, as a DataLoader has in .dataset, or the path of a file")
    items = [dataset[i] for i in range(len(dataset))]
    if not items:
        raise DataError("the dataset is empty")
    if isinstance(items[0], Mapping):
        return {name: _stacked([item[name] for item in items], str(name)) for name in items[0]}
    if isinstance(items[0], (tuple, list)):
        return tuple(_stacked([item[i] for item in items], f"part {i}") for i in range(len(items[0])))
    return (_stacked(items, "the record"),)


def _stacked(values: list[Any], what: str) -> Array:
    arrays = [_array(v, what) for v in values]
    if len(shapes := {a.shape for a in arrays}) > 1:
        raise DataError(f"{what} has records of different shapes, such as {sorted(shapes)[:2]}", "pad or crop them to one shape: a graph's shapes are fixed")
    return np.stack(arrays)


def _array(value: Any, what: str) -> Array:
    """Returns a value as an array of a type that records hold."""
    if hasattr(value, "detach"):  # of PyTorch
        value = value.detach().cpu()
        if str(value.dtype) in ("torch.bfloat16", "torch.float16"):
            value = value.float()
        value = value.numpy()
    array = np.asarray(value)
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    if array.dtype.kind not in "iub":
        raise DataError(f"{what} holds {array.dtype}", "turn it into numbers, or give the path of a CSV or Parquet file, whose texts Tally reads")
    return array


def _named(columns: dict[str, Array], takes: Sequence[str], loss: str, target: str | None) -> Records:
    if target is not None and target not in columns:
        raise DataError(f"no column is called {target!r}", f"there are {list(columns)}")
    inputs = [name for name in takes if name in columns and name != target]
    if target is None and loss not in WITHOUT_TARGET:
        left = [name for name in columns if name not in inputs]
        likely = [name for name in left if name in LABELS] or left
        if loss == TOKENS and not left and len(inputs) == 1:
            target, inputs = inputs[0], []
        elif len(likely) != 1:
            raise DataError(f"of the columns {list(columns)} the target may be any of {likely}", "name it in target=")
        else:
            target = likely[0]
    if loss == TOKENS:
        reads = next((name for name in takes if name not in inputs), takes[0])
        return _checked(Records({name: columns[name] for name in [*inputs, str(target)]}, (*inputs, reads), target, reads), loss)
    if not inputs:  # the first input reads all that is left, one number each
        rest = [name for name in columns if name != target]
        if any(columns[name].ndim != 1 for name in rest) or takes[0] in rest:
            raise DataError(f"no column is called {takes[0]!r}, as forward's input is", f"rename one of {rest}")
        columns = {takes[0]: np.column_stack([columns[name].astype(np.float32) for name in rest]), **({target: columns[target]} if target else {})}
        inputs = [takes[0]]
    return _checked(Records({name: columns[name] for name in [*inputs, *([target] if target else [])]}, tuple(inputs), target), loss)


def _checked(records: Records, loss: str) -> Records:
    lengths = {name: len(a) if a.ndim else 0 for name, a in records.columns.items()}
    if len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise DataError(f"columns have different numbers of records: {lengths}", "the first axis of each counts records")
    if loss == TOKENS and records.target is not None and (records.columns[records.target].ndim != 2 or records.columns[records.target].dtype.kind not in "iu"):
        raise DataError(f"{records.target!r} is {records.columns[records.target].dtype}{list(records.columns[records.target].shape)}", f"{TOKENS} takes whole numbers [records, context + 1]")
    return records


def with_validation(records: Records, validation: Records) -> Records:
    """Returns the records of both, of which those of the second are held out."""
    if records.columns.keys() != validation.columns.keys():
        raise DataError(f"the validation set has {list(validation.columns)}, and the dataset {list(records.columns)}")
    for name, a in records.columns.items():
        if a.shape[1:] != validation.columns[name].shape[1:]:
            raise DataError(f"{name!r} is {list(a.shape[1:])} in each record, and {list(validation.columns[name].shape[1:])} in the validation set")
    columns = {name: np.concatenate([a, validation.columns[name]]) for name, a in records.columns.items()}
    columns[HELD_OUT] = np.repeat(np.array([0, 1], np.int32), [len(records), len(validation)])
    return replace(records, columns=columns)


def write(columns: Mapping[str, Array], path: str | os.PathLike[str]) -> Path:
    """Writes columns as an .npz file. The same columns give the same bytes."""
    import zipfile

    path = Path(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in columns.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.ascontiguousarray(array), allow_pickle=False)
    return path


def arrays_of(path: str | os.PathLike[str]) -> dict[str, Array] | None:
    """Returns the arrays of an .npz or .safetensors file, None of any other source."""
    path = Path(path)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    if path.suffix == ".safetensors":
        from .weights import read_safetensors

        return read_safetensors(path)
    return None


def example_of(inspected: Iterable[Mapping[str, Any]], takes: Sequence[str], batch: int, target: str | None, unread: Iterable[str] = ()) -> dict[str, Array]:
    """Returns a batch of zeros as the module reads it, by what `tally data inspect` says of a file's columns."""
    left = {c["name"]: c for c in inspected if c["name"] != target and c["name"] not in unread}
    named = {name: left[name] for name in takes if name in left} or {takes[0]: c for c in left.values() if len(left) == 1 and c.get("shape")}
    if not named:
        numbers = sum(c.get("distinct", 1) if c["kind"] == "category" else 1 for c in left.values())
        return {takes[0]: np.zeros((batch, numbers), np.float32)}
    out: dict[str, Array] = {}
    for name, column in named.items():
        shape = list(column.get("shape", []))
        if column["kind"] == "image":  # height, width, channels: modules of PyTorch read the channels first
            shape = [shape[2], *shape[:2]]
        integer = column["kind"] in ("integer", "array") and column.get("type", "").startswith("int")
        out[name] = np.zeros((batch, *shape), np.int64 if integer else np.float32)
    return out
