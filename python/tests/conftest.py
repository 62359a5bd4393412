"""What tests share: the tally program, and a devnet that runs while they do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def program() -> str:
    """The real program: TALLY_BIN, or the one that `make build` made."""
    found = os.environ.get("TALLY_BIN") or str(ROOT / "bin" / "tally")
    if not shutil.which(found):
        pytest.skip("no tally program: make build")
    os.environ["TALLY_BIN"] = found
    return found


@pytest.fixture(scope="session")
def home(program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a consumer on a devnet."""
    folder = tmp_path_factory.mktemp("net") / "tally-devnet"
    log = (folder.parent / "log").open("w")
    net = subprocess.Popen([program, "devnet", "--dir", str(folder)], stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 120
        while not (folder / "endpoints.json").exists() or "is up" not in (folder.parent / "log").read_text():
            assert net.poll() is None and time.monotonic() < deadline, (folder.parent / "log").read_text()
            time.sleep(0.2)
        assert json.loads((folder / "endpoints.json").read_text())
        yield folder / "consumer"
    finally:
        net.send_signal(signal.SIGINT)
        try:
            net.wait(60)
        except subprocess.TimeoutExpired:
            net.kill()
        log.close()


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Runs a test in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
