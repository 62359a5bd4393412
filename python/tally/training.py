"""`train` and `batch`: a module of PyTorch and data of Python, from order to result, in one call.

`prepare` writes the order of `train` and posts nothing: its `Order` can be tried first.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, cast

from . import data
from ._cli import Program, Tell
from .errors import DataError
from .order import BATCH, TRAINING, Order, PathLike, amount, verify, write_order
from .result import BatchResult, Result

if TYPE_CHECKING:
    import torch

P = ParamSpec("P")

AUDITED: Mapping[str, Any] = {"audit": {"auditors": 1, "segments": 1}}


def prepare(
    module: torch.nn.Module,
    dataset: Any,
    *,
    loss: str | Mapping[str, Any],
    optimizer: str | Mapping[str, Any] = "adamw",
    budget: str = "5 TALLY",
    batch: int = 32,
    epochs: float = 10,
    rounds: int = 8,
    shards: int = 2,
    steps: int | None = None,
    seed: int = 1,
    target: str | None = None,
    held_out: float | Mapping[str, Any] = 0.1,
    validation: Any = None,
    example: Mapping[str, Any] | None = None,
    data_options: Mapping[str, Any] | None = None,
    problem: Mapping[str, Any] | None = None,
    conditions: Mapping[str, Any] | None = None,
    folder: PathLike | None = None,
    home: PathLike | None = None,
    endpoints: PathLike | None = None,
    binary: PathLike | None = None,
    progress: bool | Tell = True,
) -> Order:
    """Writes an order that trains a module, with all its files, and posts nothing.

    `dataset` is (X, y) arrays, a mapping of arrays, a Dataset of PyTorch, or the path of a file or a folder of images.
    `epochs` goes through the training records; it is cut into `rounds` of `shards` units of `steps` each, and after each
    round the units are averaged. `data_options`, `problem` and `conditions` go into the sections of the order file, which
    `tally train --help` describes. All files of the order are in `folder`.
    """
    from .exporter import export, input_names

    takes, name = input_names(module), loss if isinstance(loss, str) else str(loss.get("name", ""))
    said = {"normalize": "none", "heldOut": dict(held_out) if isinstance(held_out, Mapping) else {"share": held_out}, **(data_options or {})}
    with Files(folder, type(module).__name__) as files:
        loaded = _loaded(dataset)
        if loaded is None:
            if validation is not None:
                raise DataError("a validation set goes with arrays", "of a file say which records are held out, as in held_out={'column': 'part', 'value': 'test'}")
            if example is None and name in (data.TOKENS, "preference"):
                raise DataError("how many tokens the module reads is not known of a file", f"say it in example=, as in {{{takes[0]!r}: numpy.zeros((batch, context), int)}}")
            source = _file(Program(binary), Path(dataset), takes, batch, {**said, **({"target": target} if target else {})})
        else:
            source = _arrays(files.folder, data.read(loaded, takes, name, target), validation, takes, batch, name, said)
        exported = export(module, example or source.example, files.folder / "model.onnx")
        steps = steps or max(1, math.ceil(epochs * source.trained / (batch * rounds * shards)))
        section: dict[str, Any] = {
            "model": "model.onnx", "data": source.section, "loss": loss if isinstance(loss, str) else dict(loss),
            "optimizer": {"name": optimizer} if isinstance(optimizer, str) else dict(optimizer),
            "rounds": rounds, "shards": shards, "steps": steps, "batch": batch, "seed": seed, **(problem or {}),
        }  # fmt: skip
        if frozen := [*map(_literally, exported.frozen), *section.get("frozen", ())]:
            section["frozen"] = frozen
        write_order(files.folder / "order.yaml", {"kind": TRAINING, "name": type(module).__name__.lower(), "problem": section, "conditions": _conditions(budget, conditions)})
    return Order(files.final / "order.yaml", home=home, endpoints=endpoints, binary=binary, allow=source.allow, progress=progress, out=files.final / "result")


def _literally(name: str) -> str:
    """Writes a name as a pattern that nothing else matches."""
    return re.sub(r"([*?\[\\])", r"\\\1", name)


def _takes(of: Callable[P, Order]) -> Callable[[Callable[..., Result]], Callable[P, Result]]:
    """Gives a function the parameters of another."""

    def signed(f: Callable[..., Result]) -> Callable[P, Result]:
        f.__signature__ = inspect.signature(of).replace(return_annotation="Result")  # type: ignore[attr-defined]
        return f

    return signed


@_takes(prepare)
def train(module: torch.nn.Module, *args: Any, **options: Any) -> Result:
    """Has the network train a module, checks the proof of it, and loads the weights into the module.

    It takes what `prepare` takes. The same call takes the same order up, and pays for it once.
    """
    order = prepare(module, *args, **options)
    trained = cast(Result, order.wait())
    if trained.reason:
        warnings.warn(f"the order stopped early, and the model is that of the rounds that were done: {trained.reason}", stacklevel=2)
    proof = verify(trained.bundle, home=order.program.home, binary=order.program.binary, require=True)
    trained.load(module)
    return replace(trained, verification=proof)


@dataclass(frozen=True)
class Source:
    """What an order trains on."""

    section: dict[str, Any]  # of the order file
    example: dict[str, data.Array]  # a batch of it
    trained: float  # records that training sees
    allow: tuple[str, ...] = ()  # folders beside that of the order


def _loaded(dataset: Any) -> Any:
    """Returns a dataset, or what a file of arrays holds; None for the path of anything else."""
    return data.arrays_of(dataset) if isinstance(dataset, (str, os.PathLike)) else dataset


def _arrays(folder: Path, records: data.Records, validation: Any, takes: Sequence[str], batch: int, loss: str, said: Mapping[str, Any]) -> Source:
    """Writes records beside the order file."""
    section, trained = dict(said), len(records) * (1 - said["heldOut"].get("share", 0))
    example = records.example(batch)
    if validation is not None:
        records = data.with_validation(records, data.read(_loaded(validation), takes, loss, records.target))
        section["heldOut"], trained = {"column": data.HELD_OUT, "value": "1"}, float(len(records.columns[data.HELD_OUT]) - records.columns[data.HELD_OUT].sum())
    data.write(records.columns, folder / "data.npz")
    return Source({"source": "data.npz", **section, **({"target": records.target} if records.target else {})}, example, trained)


def _file(program: Program, path: Path, takes: Sequence[str], batch: int, section: Mapping[str, Any]) -> Source:
    """Looks into a file or a folder, which stays where it is."""
    path = path.resolve()
    found = program.run("data", "inspect", path).value
    names = [c["name"] for c in found["columns"]]
    label = section.get("target") or next((name for name in data.LABELS if name in names), None)
    held = section["heldOut"]
    unread = {*section.get("ignore", ()), held.get("column"), held.get("group")}
    if features := section.get("features"):
        unread |= set(names) - {*features, *takes}
    example = data.example_of(found["columns"], takes, batch, label, unread)
    allow = path if path.is_dir() else path.parent
    return Source({"source": str(path), **section}, example, int(found["records"]) * (1 - held.get("share", 0)), (str(allow),))


def _conditions(budget: str, conditions: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"maxPrice": amount(budget), "providers": 2, "assurance": dict(AUDITED), **(conditions or {})}


def batch(
    model: torch.nn.Module | PathLike,
    records: Any,
    *,
    budget: str = "5 TALLY",
    batch: int = 32,
    problem: Mapping[str, Any] | None = None,
    conditions: Mapping[str, Any] | None = None,
    folder: PathLike | None = None,
    home: PathLike | None = None,
    endpoints: PathLike | None = None,
    binary: PathLike | None = None,
    progress: bool | Tell = True,
) -> BatchResult:
    """Has the network apply a model to every record, checks the proof, and returns the results.

    `model` is a module, or the path of an ONNX file. `records` is an array, a mapping of arrays by input, a Dataset
    without a target, or the path of an .npz or .safetensors file.
    """
    loaded = _loaded(records)
    if loaded is None:
        raise DataError(f"{records} is no .npz or .safetensors file", "load it, or write an order file for tally.Order: tally batch --help")
    path = Path(model) if isinstance(model, (str, os.PathLike)) else None
    with Files(folder, "batch" if path is not None else type(model).__name__) as files:
        if path is not None:
            takes = [str(i["name"]) for i in Program(binary).run("model", "show", path).value["inputs"]]
            columns = data.read(loaded, takes, "output").columns
            graph, allow = str(path.resolve()), [path.resolve().parent]  # where its weights may lie, too
        else:
            from .exporter import export, input_names

            read = data.read(loaded, input_names(cast("torch.nn.Module", model)), "output")
            columns = read.columns
            graph, allow = "model.onnx", []
            export(cast("torch.nn.Module", model), read.example(min(batch, len(read))), files.folder / graph, trained=False)
        data.write(columns, files.folder / "records.npz")
        section = {"model": graph, "records": "records.npz", **(problem or {})}
        terms = {"assurance": {"audit": {"rate": "5%"}}, **(conditions or {})}
        write_order(files.folder / "order.yaml", {"kind": BATCH, "name": "batch", "problem": section, "conditions": _conditions(budget, terms)})
    order = Order(files.final / "order.yaml", home=home, endpoints=endpoints, binary=binary, allow=allow, progress=progress, out=files.final / "result")
    result = cast(BatchResult, order.wait())
    return BatchResult(result.raw, verify(result.bundle, home=home, binary=binary, require=True))


class Files:
    """The folder of an order. Unless the caller names one, it is called by what it holds: so the same call finds it again."""

    def __init__(self, folder: PathLike | None, name: str) -> None:
        self.named = Path(folder).resolve() if folder is not None else None
        self.name = name.lower()
        self.folder = self.final = Path()

    def __enter__(self) -> Files:
        parent = self.named.parent if self.named is not None else Path.cwd()
        parent.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="tally-draft-", dir=parent))
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        """Moves the files to where they stay, or removes them after a failure."""
        if kind is None:
            self.final = self.named or Path.cwd() / f"tally-{self.name}-{_digest(self.folder)}"
            self.final.mkdir(exist_ok=True)
            for path in self.folder.iterdir():
                os.replace(path, self.final / path.name)
        shutil.rmtree(self.folder, ignore_errors=True)


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:8]
