"""Orders: `Order` posts and follows an order file, `write_order` writes one, `verify` checks a proof."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ._cli import Program, Progress, Tell
from .errors import TallyError, VerificationError
from .result import BatchResult, Result, Verification

TRAINING, BATCH = "TrainingOrder", "BatchOrder"
UNANCHORED = 3  # the exit code of tally verify where nobody signed who is trusted

PathLike = str | os.PathLike[str]


class Order:
    """An order file, whether it is posted yet or not. The same file gives the same order, which is paid for once."""

    def __init__(
        self, path: PathLike, *, home: PathLike | None = None, endpoints: PathLike | None = None, binary: PathLike | None = None,
        allow: Sequence[PathLike] = (), progress: bool | Tell = True, out: PathLike | None = None,
    ) -> None:  # fmt: skip
        self.path = Path(path)
        self.program = Program(binary, home, endpoints)
        self.allow = [str(folder) for folder in allow]
        self.id: str | None = None
        self.posted: dict[str, Any] = {}  # what was told when it was posted
        self.out = out  # where the result goes unless wait() says otherwise
        self._progress = progress
        text = self.path.read_text(encoding="utf-8")
        kind = re.search(r"^kind:\s*[\"']?(\w+)", text, re.MULTILINE)
        if kind is None or kind[1] not in (TRAINING, BATCH):
            raise TallyError(f"{self.path} is no order: it has no line kind: {TRAINING} or kind: {BATCH}")
        self.kind = kind[1]
        steps = re.search(r"^ +steps:\s*(\d+)", text, re.MULTILINE)
        self._steps = int(steps[1]) if steps else 16

    def validate(self) -> dict[str, Any]:
        """Tries the order without posting it, and returns what it would take, by the offers of the network."""
        return dict(self._run("order", "validate", self.path, chain=True).value)

    def post(self, *, again: bool = False) -> str:
        """Posts the order and locks its price; returns its id once the network has its files.

        An order that was posted before is taken up. `again` posts, and pays for, another of the same.
        """
        self.posted = dict(self._run(self._verb, self.path, *(["--again"] if again else []), chain=True).value)
        self.id = str(self.posted["order"])
        return self.id

    def wait(self, out: PathLike | None = None, *, force: bool = False) -> Result | BatchResult:
        """Follows the order to its settlement, fetches what it gave into a folder, and returns it.

        One that is not posted yet is posted. What is in the folder stays, unless `force` says otherwise, or the folder is
        that of an order that was prepared here.
        """
        where = ["--out", os.fspath(out or self.out or "")] if out or self.out else []
        where += ["--force"] if force or not out and self.out else []
        if self.id is None:
            raw = self._run(self._verb, self.path, "--wait", *where, chain=True).value
        else:
            raw = self._run("order", "watch", self.id, *where, chain=True, posted=True).value
        raw = {"loss_first": self.posted.get("loss_first"), **raw} if self.kind == TRAINING else raw
        self.id = str(raw["order"]) if "order" in raw else self.id
        return Result(raw, self._steps) if self.kind == TRAINING else BatchResult(raw)

    def show(self) -> dict[str, Any]:
        """Returns how the order stands."""
        if self.id is None:
            raise TallyError("the order is not posted yet", "post() posts it, or takes it up")
        return dict(self.program.run("order", "show", self.id, chain=True).value)

    @property
    def _verb(self) -> str:
        return "train" if self.kind == TRAINING else "batch"

    def _run(self, *args: PathLike, chain: bool, posted: bool = False) -> Any:
        tell = self._progress if callable(self._progress) else Progress() if self._progress else None
        allowed = [] if posted else [x for folder in self.allow for x in ("--allow", folder)]
        try:
            return self.program.run(*args, *allowed, tell=tell, chain=chain)
        finally:
            if isinstance(tell, Progress):
                tell.done()


def verify(
    bundle: PathLike, *, trust: str | None = None, full: bool = False, home: PathLike | None = None, binary: PathLike | None = None,
    require: bool = False,
) -> Verification:  # fmt: skip
    """Checks a proof, without a network: every hash and signature, and some parts of the work by executing them again.

    `trust` is the hash of the validator set that you trust, or a file that notes it; without one, what `home` knows
    counts. `full` executes everything. What is wrong raises `TallyError`; where nobody who is trusted signed, the
    verification is false, or, with `require`, a `VerificationError`.
    """
    args: list[PathLike] = ["verify", bundle]
    args += ["--trust", trust] if trust else []
    args += ["--full"] if full else []
    reply = Program(binary, home).run(*args, accept=(0, UNANCHORED))
    parts = reply.value if isinstance(reply.value, list) else [reply.value]
    if reply.code == UNANCHORED and require:
        raise VerificationError(f"nobody whom you trust signed {os.fspath(bundle)}", "name the validator set that you trust in trust=, or the home from which the order was followed")
    return Verification(reply.code == 0 and all(part.get("verified", False) for part in parts), parts[0])


def write_order(path: PathLike, order: Mapping[str, Any]) -> Path:
    """Writes an order file, as `tally train --help` and `tally batch --help` describe them."""
    path = Path(path)
    path.write_text("\n".join(_lines(order, "")) + "\n", encoding="utf-8")
    return path


def _lines(section: Mapping[str, Any], indent: str) -> list[str]:
    out: list[str] = []
    for key, value in section.items():
        name = key if re.fullmatch(r"[A-Za-z]\w*", key) else json.dumps(key, ensure_ascii=False)
        if isinstance(value, Mapping) and value:
            out += [f"{indent}{name}:", *_lines(value, indent + "  ")]
        else:
            out.append(f"{indent}{name}: {value if key == 'kind' else json.dumps(value, ensure_ascii=False)}")
    return out


def amount(budget: str) -> str:
    """Returns an amount of money as an order file has it: of "5 TALLY" 5tally."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d{1,6})?)\s*(tally|utally)\s*", budget, re.IGNORECASE) if isinstance(budget, str) else None
    if found is None or (found[2].lower() == "utally" and "." in found[1]):
        raise TallyError(f"the budget {budget!r} is no amount of money", 'write it like "5 TALLY", or in millionths "5000000 utally"')
    return found[1] + found[2].lower()
