"""From module to trained weights, on a real network."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from test_export import CNN, gpt2, torch

import tally

pytestmark = pytest.mark.network
ROOT = Path(__file__).resolve().parents[2]
SOON = {"unitWindow": "3s", "window": "6s"}


def test_a_cnn_learns(home: Path, inside: Path) -> None:
    torch.manual_seed(1)
    label = torch.randint(3, (480,))
    image = 0.3 * torch.randn(480, 1, 8, 8)
    image[torch.arange(480), 0, 2 * label, :] += 1  # a bar, whose place is the class
    module = CNN(drop=0.1)
    still = module.norm.running_mean.clone()
    told: list[str] = []
    data = torch.utils.data.TensorDataset(image, label)
    result = tally.train(module, data, loss="cross-entropy", optimizer={"name": "adamw", "learningRate": 0.02}, epochs=8, rounds=3, home=home, conditions=SOON, progress=told.append)
    assert result.status == "settled" and any("rounds merged" in line for line in told)
    assert result.verification and result.verification.metrics == result.metrics
    assert len(result.losses) == 4 and result.losses[-1] < result.losses[0] / 2
    assert not (module.norm.running_mean == still).all(), "running statistics do not follow"
    module.eval()
    held = float((module(image).argmax(1) == label).float().mean())
    assert held > 0.9 and result.metrics["accuracy"] > 0.9
    # The same call, of the module as it was, finds the order again. One that is settled is not paid for twice.
    assert len(list(inside.glob("tally-cnn-*"))) == 1
    again = tally.Order(next(inside.glob("tally-cnn-*")) / "order.yaml", home=home, progress=False)
    assert again.wait("again").order == result.order  # type: ignore[union-attr]
    assert again.show()["status"] == "settled"
    # The model that came back is applied as the module is.
    applied = tally.batch(result.onnx, image[:32].numpy(), home=home, conditions=SOON, progress=False)
    assert np.allclose(applied.outputs["output"], module(image[:32]).detach().numpy(), atol=1e-4)


def test_a_language_model_learns(home: Path, inside: Path) -> None:
    torch.manual_seed(1)
    module = gpt2(drop=0.1)
    tokens = (np.arange(9) + np.arange(400)[:, None]) % 20
    result = tally.train(module, tokens, loss="next-token-cross-entropy", optimizer={"name": "adamw", "learningRate": 0.01}, epochs=4, rounds=2, home=home, conditions=SOON, progress=False)
    assert result.losses[-1] < result.losses[0] / 2
    assert module.transformer.wte.weight is module.lm_head.weight
    with torch.no_grad():
        module.eval()
        seen = torch.from_numpy(tokens[:32])
        ones = torch.ones_like(seen[:, :-1])
        right = module(seen[:, :-1], attention_mask=ones).logits.argmax(-1)[:, 1:] == seen[:, 2:]
    assert float(right.float().mean()) > 0.8


def test_a_table_is_read_where_it_lies(home: Path, inside: Path) -> None:
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(4, affine=False), torch.nn.Linear(4, 3))
    order = tally.prepare(module, ROOT / "examples/search/iris.csv", loss="cross-entropy", target="species", home=home, progress=False)
    tried = order.validate()
    assert tried["records"] + tried["heldout_records"] == 150 and tried["trained"] == ["1.bias", "1.weight"]


def test_ctrl_c_tells_how_to_go_on(home: Path, inside: Path) -> None:
    code = f"""
import tally, numpy as np, torch
X, y = np.random.default_rng(0).normal(size=(64, 3)), np.arange(64) % 2
conditions = {{"unitWindow": "3s", "window": "6s", "providers": 100}}  # as many as there are not: it waits
tally.train(torch.nn.Linear(3, 2), (X, y), loss="cross-entropy", home={str(home)!r}, conditions=conditions)
"""
    with (inside / "log").open("w") as log:
        child = subprocess.Popen([sys.executable, "-c", code], stderr=log, stdout=log)
        deadline = time.monotonic() + 120
        while "waits for an offer" not in (inside / "log").read_text():
            assert child.poll() is None and time.monotonic() < deadline, (inside / "log").read_text()
            time.sleep(0.2)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) != 0
    text = (inside / "log").read_text()
    assert "KeyboardInterrupt" in text and (found := re.search(r"tally order watch (\w{64}) --home", text)), text
    order = next(inside.glob("tally-linear-*")) / "order.yaml"
    assert order.exists(), "the files of the order are gone"
    subprocess.run([os.environ["TALLY_BIN"], "tx", "market", "cancel-order", found[1], "--home", str(home), "-y"], check=True, capture_output=True)


def test_the_guide_is_true(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home.parent.parent)
    text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
