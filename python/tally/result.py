"""What an order gave: `Result` of a training, `BatchResult` of a batch, `Verification` of a proof."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import curve
from .errors import TallyError

if TYPE_CHECKING:
    import numpy as np
    import torch


@dataclass(frozen=True)
class Verification:
    """What `tally verify` found. It is true if the bundle proves its model, signed by validators whom you trust."""

    verified: bool
    raw: dict[str, Any] = field(repr=False)

    @property
    def order(self) -> str:
        return str(self.raw["order"])

    @property
    def metrics(self) -> dict[str, float]:
        """Scores on the held-out records, computed again here."""
        return _metrics(self.raw)

    @property
    def executed(self) -> list[str]:
        """The parts that were executed again, and gave the same bits."""
        return [str(part) for part in self.raw["executed"]]

    @property
    def trust_root(self) -> str:
        """The hash of the validator set that signed."""
        return str(self.raw["trust_root"])

    def __bool__(self) -> bool:
        return self.verified


@dataclass(frozen=True)
class Result:
    """A model that the network has trained."""

    raw: dict[str, Any] = field(repr=False)  # what tally train told
    steps: int = 0  # of a round
    verification: Verification | None = None

    @property
    def order(self) -> str:
        """The order's id."""
        return str(self.raw["order"])

    @property
    def status(self) -> str:
        return str(self.raw["status"])

    @property
    def reason(self) -> str:
        """Why the order stopped early, "" if all of it was done: the model is then that of the rounds that were."""
        return str(self.raw.get("reason") or "")

    @property
    def metrics(self) -> dict[str, float]:
        """Scores on records that training has not seen."""
        return _metrics(self.raw)

    @property
    def losses(self) -> list[float]:
        """The loss before the first step, where it is known, and after each round: the mean over its shards."""
        first = [_number(self.raw["loss_first"])] if self.raw.get("loss_first") else []
        return first + [_number(x) for x in self.raw.get("losses") or []]

    @property
    def safetensors(self) -> Path:
        """The trained weights, by the names that they have in the module."""
        return self._file("safetensors")

    @property
    def onnx(self) -> Path:
        return self._file("onnx")

    @property
    def bundle(self) -> Path:
        """The proof, which anybody can check by `tally.verify`."""
        return self._file("bundle")

    @property
    def trust_root(self) -> str:
        return str(self.raw["trust_root"])

    @property
    def paid(self) -> float:
        """What the order cost, in TALLY."""
        return (int(self.raw["price_utally"]) + int(self.raw["deposit_utally"]) - int(self.raw["refund_utally"])) / 1e6

    def load(self, module: torch.nn.Module) -> list[str]:
        """Loads the trained weights into a module, in place, and returns their names."""
        from .weights import load

        return load(module, self.safetensors)

    def curve(self) -> str:
        """The curve of losses, as an SVG."""
        losses = self.losses
        begin = 0 if self.raw.get("loss_first") else 1
        at = [(begin + i) * max(self.steps, 1) for i in range(len(losses))]
        return curve.svg(losses, at, f"loss of order {self.order[:8]}")

    def _repr_html_(self) -> str:
        scores = ", ".join(f"{name} {value:.6g}" for name, value in self.metrics.items())
        proof = "" if self.verification is None else "verified" if self.verification else "not verified"
        return f"<div><b>{self.order[:16]}</b> {self.status} {proof}<br>{scores}</div>{self.curve()}"

    def __repr__(self) -> str:
        return f"Result(order={self.order[:16]!r}, status={self.status!r}, metrics={self.metrics}, bundle={str(self.raw.get('bundle'))!r})"

    def _file(self, name: str) -> Path:
        if not self.raw.get(name):
            raise TallyError(f"order {self.order[:16]} gave no model: {self.raw.get('reason') or self.status}")
        return Path(self.raw[name])


@dataclass(frozen=True)
class BatchResult:
    """What a model gave for each record."""

    raw: dict[str, Any] = field(repr=False)
    verification: Verification | None = None

    @property
    def order(self) -> str:
        return str(self.raw["order"])

    @property
    def status(self) -> str:
        return str(self.raw["status"])

    @property
    def outputs(self) -> dict[str, np.ndarray[Any, Any]]:
        """The results by output of the model; the first axis counts records."""
        import numpy as np

        return {name: np.load(path, allow_pickle=False) for name, path in self.raw["outputs"].items()}

    @property
    def bundle(self) -> Path:
        return Path(self.raw["bundle"])

    @property
    def trust_root(self) -> str:
        return str(self.raw["trust_root"])


def _metrics(raw: dict[str, Any]) -> dict[str, float]:
    return {name: _number(value) for name, value in (raw.get("metrics") or {}).items()}


def _number(value: float | None) -> float:
    """Reads a number; what is not finite is null in JSON."""
    return math.nan if value is None else float(value)
