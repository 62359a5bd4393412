"""The tally program, driven by subprocess: no protocol is written twice.

Call `Program.run`. The program prints one JSON value on standard output, and lines for a watching person on standard
error. These become progress; an error of the program becomes a `TallyError` with its hint.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from .errors import BinaryMissing, TallyError

Tell = Callable[[str], None]

MISSING = "`make build` in Tally's repository makes bin/tally: put it on PATH, name it in TALLY_BIN, or pass binary="


@dataclass(frozen=True)
class Reply:
    """What the program printed, and its exit code."""

    value: Any
    code: int


@dataclass(frozen=True)
class Program:
    """Where the program is, and for whom it works."""

    binary: str | os.PathLike[str] | None = None  # else TALLY_BIN, else tally on PATH
    home: str | os.PathLike[str] | None = None  # else TALLY_HOME, else ~/.tally
    endpoints: str | os.PathLike[str] | None = None  # endpoints.json of a devnet to join, for a home that knows no node

    def find(self) -> str:
        """Returns the path of the program."""
        for source, name in (("binary", self.binary), ("TALLY_BIN", os.environ.get("TALLY_BIN"))):
            if name:
                found = shutil.which(os.fspath(name))
                if found is None:
                    raise BinaryMissing(f"{source} is {os.fspath(name)}, which is no program", MISSING)
                return found
        found = shutil.which("tally")
        if found is None:
            raise BinaryMissing("the tally program is not on PATH", MISSING)
        return found

    def run(self, *args: str | os.PathLike[str], tell: Tell | None = None, chain: bool = False, accept: Sequence[int] = (0,)) -> Reply:
        """Runs a verb, and returns what it prints; `chain` says that it speaks to a chain."""
        command = [self.find(), *(os.fspath(a) for a in args), "--json"]
        if self.home is not None:
            command += ["--home", os.fspath(self.home)]
        if chain and self.endpoints is not None:
            command += ["--endpoints", os.fspath(self.endpoints)]
        # In a session of its own, so that one Ctrl-C comes to it once: from here.
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace", start_new_session=True)
        out, lines = _follow(child, tell)
        value = _parse(out)
        if child.returncode in accept:
            return Reply(value, child.returncode)
        if isinstance(value, dict) and "error" in value:
            raise TallyError(str(value["error"]), str(value.get("hint", "")))
        raise TallyError(_said(lines, "error:") or f"tally {args[0]} ended with code {child.returncode}", _said(lines, "hint:"))


def _follow(child: subprocess.Popen[str], tell: Tell | None) -> tuple[str, list[str]]:
    """Waits for a program while lines of its standard error are told. Ctrl-C is passed on, and its last words are shown."""
    assert child.stdout is not None and child.stderr is not None
    out: list[str] = []
    reader = threading.Thread(target=lambda pipe: out.append(pipe.read()), args=(child.stdout,), daemon=True)
    reader.start()
    lines: list[str] = []
    try:
        _read(child.stderr, lines, tell)
        child.wait()
    except KeyboardInterrupt:
        child.send_signal(signal.SIGINT)
        try:
            _read(child.stderr, lines, lambda line: print(line, file=sys.stderr, flush=True))
            child.wait()
        except KeyboardInterrupt:
            child.kill()
            child.wait()
        raise
    except BaseException:
        child.kill()
        child.wait()
        raise
    reader.join()
    return "".join(out), lines


def _read(pipe: IO[str], lines: list[str], tell: Tell | None) -> None:
    for line in pipe:
        line = line.rstrip("\n")
        lines.append(line)
        del lines[:-1000]
        if tell is not None and line and not line.startswith(("error:", "hint:")):
            tell(line)


def _parse(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else None
    except ValueError as e:
        raise TallyError(f"the tally program printed no JSON, but {text[:200]!r}", "is it the tally of this package's version? tally --version tells") from e


def _said(lines: Sequence[str], prefix: str) -> str:
    for line in reversed(lines):
        if line.startswith(prefix):
            return line.removeprefix(prefix).strip()
    return ""


class Progress:
    """Shows lines as they come: on one line of a terminal or a notebook, else one below another."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        notebook = "ipykernel" in sys.modules
        self.stream = stream or (sys.stdout if notebook else sys.stderr)
        self.live = notebook or self.stream.isatty()
        self.width = 0

    def __call__(self, line: str) -> None:
        if not self.live:
            print(line, file=self.stream, flush=True)
            return
        room = shutil.get_terminal_size().columns - 1
        line = line if len(line) <= room else line[: room - 1] + "…"
        self.stream.write("\r" + line.ljust(self.width))
        self.stream.flush()
        self.width = len(line)

    def done(self) -> None:
        """Ends the line."""
        if self.live and self.width:
            self.stream.write("\n")
            self.stream.flush()
            self.width = 0

