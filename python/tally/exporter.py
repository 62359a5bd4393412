"""PyTorch modules as ONNX graphs that Tally trains as PyTorch would.

Call `export`. It traces the module in training mode, by torch.export: so every Dropout is in the graph, those inside
of attention and between the layers of an LSTM as well. Then it writes each node as a model is applied, which is how
Tally wants it: `core/train` turns Dropout and BatchNormalization on again, and the model that comes back is ready to use.

What always holds:

- Initializers have the names and shapes of the module's state_dict; a tied weight has one of its names. Nothing is folded.
- The module is as it was: weights, buffers and the mode of each part.
- Chance that Tally does not know is refused, by the name of the part that draws. Nothing is left out in silence.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import ExportError

if TYPE_CHECKING:
    import onnx
    import torch

    Array = np.ndarray[Any, Any]

PREFIX = "module."  # of names below the part that adapts inputs and outputs
EXTERNAL = 1 << 30  # bytes of weights from where on they lie in a file of their own: protobuf ends at 2 GiB
CHANCE = {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial"}


@dataclass(frozen=True)
class Exported:
    """A graph that was written, and what an order has to say of it."""

    path: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    frozen: tuple[str, ...] = field(default=())  # initializers that are no parameters, or need no gradient


def input_names(module: torch.nn.Module) -> list[str]:
    """Returns the names of what forward takes by position."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [p.name for p in inspect.signature(module.forward).parameters.values() if p.kind in kinds]


def export(module: torch.nn.Module, example: Mapping[str, Array], path: str | Path, *, trained: bool = True) -> Exported:
    """Writes a module as an ONNX file, as it is trained, or, if it is not to be `trained`, as it is applied.

    `example` has an array for each input, by the name that it has in the module's forward; the first axis is the batch,
    and the graph is for batches of that size.
    """
    torch = _torch()
    if trained:
        _check(module)
    wrapped, outputs = _wrap(torch, module)
    device = next((weight.device for weight in module.parameters()), torch.device("cpu"))
    tensors = {name: torch.from_numpy(np.array(value)).to(device) for name, value in example.items()}
    with _mode(module, trained) as still, _quiet():
        try:
            program = torch.onnx.export(
                wrapped, (), kwargs={"inputs": tensors}, dynamo=True, optimize=False, verbose=False,
                input_names=list(tensors), external_data=False,
            )  # fmt: skip
        except Exception as e:
            raise ExportError(f"PyTorch cannot export {type(module).__name__}: {_cause(e)}", "torch.export wants a forward without branches on values") from e
    model: onnx.ModelProto = program.model_proto
    frozen = _finish(model, module, outputs, still)
    path = Path(path)
    _save(model, path)
    return Exported(path, tuple(i.name for i in model.graph.input), tuple(o.name for o in model.graph.output), tuple(frozen))


def _torch() -> Any:
    try:
        import onnx
        import onnxscript
        import torch
    except ImportError as e:
        raise ExportError(f"{e.name} is missing", "pip install torch 'tally-network[torch]'") from e
    del onnx, onnxscript
    return torch


def _check(module: torch.nn.Module) -> None:
    """Refuses what Tally would train in another way than PyTorch."""
    for name, weight in module.named_parameters():
        if weight.requires_grad and str(weight.dtype) != "torch.float32":
            raise ExportError(f"parameter {name} is {weight.dtype}, and float32 is trained", "module.float(); the order's profile 'mixed' multiplies in bfloat16")
    for name, part in module.named_modules():
        kind = type(part).__name__
        if kind.startswith(("BatchNorm", "SyncBatchNorm", "LazyBatchNorm")):
            if getattr(part, "momentum", 0.1) is None:
                raise ExportError(f"{name} ({kind}) averages over all batches (momentum=None)", "give it a momentum, such as 0.1")
            if not getattr(part, "track_running_stats", True):
                raise ExportError(f"{name} ({kind}) keeps no running statistics", "set track_running_stats=True, or use GroupNorm")


def _wrap(torch: Any, module: torch.nn.Module) -> tuple[torch.nn.Module, list[str]]:
    """Returns a module of one argument, the inputs by name, and the names of its outputs, which fill when it runs."""
    outputs: list[str] = []
    extra = {"use_cache": False} if "use_cache" in inspect.signature(module.forward).parameters else {}

    channels = (torch.nn.functional.dropout1d, torch.nn.functional.dropout2d, torch.nn.functional.dropout3d)
    unbatched = {(channels[0], 2), (channels[2], 4)}

    def whole(func: Any, input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        kept = 1 if (func, input.dim()) in unbatched else 2
        ones = torch.ones([*input.shape[:kept], *[1] * (input.dim() - kept)], dtype=input.dtype, device=input.device)
        return input * torch.nn.functional.dropout(ones, p, training)

    class Drops(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        """Writes what drops whole channels as a product with a Dropout of ones: ONNX has no operator for it."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func in channels:
                return whole(func, *args, **(kwargs or {}))
            return func(*args, **(kwargs or {}))

    class Adapter(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module

        def forward(self, inputs: dict[str, Any]) -> Any:
            with Drops():
                result = self.module(**inputs, **extra)
            names, values = _outputs(torch, result)
            outputs[:] = names
            return values

    return Adapter(), outputs


def _outputs(torch: Any, result: Any) -> tuple[list[str], tuple[Any, ...]]:
    """Names what forward returns: logits of a mapping alone, else all tensors."""
    if torch.is_tensor(result):
        return ["output"], (result,)
    if isinstance(result, Mapping):
        named = {k: v for k, v in result.items() if torch.is_tensor(v)}
        if "logits" in named:
            named = {"logits": named["logits"]}
    elif isinstance(result, (tuple, list)):
        named = {f"output_{i}": v for i, v in enumerate(result) if torch.is_tensor(v)}
    else:
        named = {}
    if not named:
        raise ExportError(f"forward returns {type(result).__name__}", "return a tensor, several, or a mapping with tensors")
    return list(named), tuple(named.values())


@contextlib.contextmanager
def _mode(module: torch.nn.Module, trained: bool) -> Iterator[set[str]]:
    """Has a module be traced as it is trained, or applied, and gives the names of the parts that do not train.

    Parts of a module that trains already stay as their owner has set them.
    """
    modes = [(part, part.training) for part in module.modules()]
    if module.training != trained:
        module.train(trained)
    try:
        yield {name for name, part in module.named_modules() if not part.training}
    finally:
        for part, training in modes:
            part.training = training


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps what PyTorch's exporter tells its own developers from the user."""
    import logging

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.ERROR)
        try:
            yield
        finally:
            logging.disable(before)


def _cause(e: BaseException) -> str:
    """Returns what happened first, without the advice that wraps it."""
    while e.__cause__ is not None:
        e = e.__cause__
    text = str(e).strip().split("\n\n")[0]
    return f"{type(e).__name__}: {text[:600]}"


def _finish(model: onnx.ModelProto, module: torch.nn.Module, outputs: list[str], still: set[str]) -> list[str]:
    """Names values as the module does, writes nodes as a model is applied, and returns what is not trained."""
    graph = model.graph
    rename = {i.name: i.name.removeprefix(PREFIX) for i in graph.initializer}
    rename |= {value.name: name for value, name in zip(graph.output, outputs, strict=True)}
    if both := {i.name for i in graph.input} & set(rename.values()):
        raise ExportError(f"{sorted(both)[0]!r} is an input of the module and a weight or an output of it", "rename the argument of forward")
    _rename(graph, rename)
    _slice(graph)
    constants = _constants(graph)
    reads = Counter(name for node in graph.node for name in node.input)
    trained = {name for name, weight in module.named_parameters(remove_duplicate=False) if weight.requires_grad}
    running: set[str] = set()
    for node in _nodes(graph):
        if node.op_type in CHANCE:
            raise ExportError(f"{_where(node, module)} draws at random ({node.op_type}), which Tally does not train with", "leave it out, set its rate to 0, or use Dropout")
        if node.op_type == "Dropout":
            _drop(node, constants, module)
        if node.op_type == "BatchNormalization":
            statistics = _apply(node)
            if statistics[0].rpartition(".")[0] in still:
                continue
            if any(reads[name] != 1 for name in statistics):
                raise ExportError(f"{_where(node, module)} is applied more than once, and its running statistics would follow neither batch", "give each place a BatchNorm of its own, or use GroupNorm")
            running |= set(statistics)
    return [i.name for i in graph.initializer if i.data_type == 1 and i.name not in trained | running]


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """Gives all nodes, those of inner graphs too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)


def _constants(graph: onnx.GraphProto) -> dict[str, Array]:
    """Returns what Constant nodes hold."""
    from onnx import numpy_helper

    out: dict[str, Array] = {}
    for node in graph.node:
        for a in node.attribute if node.op_type == "Constant" else ():
            if a.name == "value":
                out[node.output[0]] = numpy_helper.to_array(a.t)
            elif a.name == "value_float":
                out[node.output[0]] = np.array(a.f, np.float32)
            elif a.name in ("value_int", "value_ints"):
                out[node.output[0]] = np.array(a.i if a.name == "value_int" else a.ints, np.int64)
    return out


def _drop(node: onnx.NodeProto, constants: Mapping[str, Array], module: torch.nn.Module) -> None:
    """Writes a Dropout as it is applied: what trains it knows its share, and drops."""
    ratio = constants.get(node.input[1]) if len(node.input) > 1 else np.array(0.5, np.float32)
    if ratio is None or ratio.dtype != np.float32 or ratio.size != 1:
        raise ExportError(f"{_where(node, module)} drops a share that is computed", "give it a number")
    del node.input[2:], node.output[1:]


def _apply(node: onnx.NodeProto) -> list[str]:
    """Writes a BatchNormalization as it is applied, and returns the names of its running statistics."""
    kept = [a for a in node.attribute if a.name != "training_mode"]
    del node.attribute[:], node.output[1:]
    node.attribute.extend(kept)
    return list(node.input[3:5])


def _slice(graph: onnx.GraphProto) -> None:
    """Writes parts of a sequence that was split, as PyTorch exports split(), as slices: Tally has no sequences."""
    from onnx import helper, numpy_helper

    constants, nodes = _constants(graph), list(graph.node)
    split = {n.output[0]: n for n in nodes if n.op_type == "SplitToSequence" and len(n.input) == 2 and n.input[1] in constants}
    out: list[onnx.NodeProto] = []
    for node in nodes:
        whole = split.get(node.input[0]) if node.op_type == "SequenceAt" and node.input[1] in constants else None
        if whole is None:
            out.append(node)
            continue
        sizes, at = constants[whole.input[1]], int(constants[node.input[1]])
        begin, end = (at * int(sizes), (at + 1) * int(sizes)) if sizes.ndim == 0 else (int(sizes[:at].sum()), int(sizes[: at + 1].sum()))
        axis = next((a.i for a in whole.attribute if a.name == "axis"), 0)
        names = [f"{node.output[0]}/{what}" for what in ("begin", "end", "axis")]
        for name, value in zip(names, (begin, end, axis), strict=True):
            out.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array([value], np.int64))))
        out.append(helper.make_node("Slice", [whole.input[0], *names], node.output))
    read = {name for node in out for name in node.input}
    del graph.node[:]
    graph.node.extend(n for n in out if n.op_type != "SplitToSequence" or n.output[0] in read)


def _rename(graph: onnx.GraphProto, names: Mapping[str, str]) -> None:
    held = {name for node in graph.node for name in node.output} | {i.name for i in graph.initializer} | {i.name for i in graph.input}
    clash = (held - names.keys()) & set(names.values())
    names = dict(names) | {name: f"{name}/inner" for name in clash}
    for value in (*graph.initializer, *graph.output, *graph.value_info):
        value.name = names.get(value.name, value.name)
    for node in graph.node:
        for side in (node.input, node.output):
            side[:] = [names.get(name, name) for name in side]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                for inner in attribute.g.node:
                    inner.input[:] = [names.get(name, name) for name in inner.input]


def _where(node: onnx.NodeProto, module: torch.nn.Module) -> str:
    """Names the part of the module that a node comes from."""
    for entry in node.metadata_props:
        if entry.key == "pkg.torch.onnx.name_scopes":
            names = [name.removeprefix(PREFIX) for name in re.findall(r"'([^']*)'", entry.value)]
            parts = dict(module.named_modules())
            for name in reversed(names[:-1]):
                if name and name in parts:
                    return f"{name} ({type(parts[name]).__name__})"
    return type(module).__name__


def _save(model: onnx.ModelProto, path: Path) -> None:
    import onnx

    for node in _nodes(model.graph):  # which file and line a node comes from is nobody else's business
        del node.metadata_props[:]
        node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer):
        del value.metadata_props[:]
    del model.graph.metadata_props[:]
    weights = sum(len(i.raw_data) for i in model.graph.initializer)
    onnx.save(model, path, save_as_external_data=weights > EXTERNAL, location=path.name + ".data")
