"""What needs neither PyTorch nor a network."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from support import stored

import tally
from tally import curve, data
from tally._cli import Program, Progress
from tally.order import amount
from tally.weights import read_safetensors


def test_nothing_needs_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; sys.modules['onnx'] = None; import tally; assert tally.Order and tally.verify and tally.load"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_missing_program_is_told_how_to_get(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("TALLY_BIN")
    with pytest.raises(tally.BinaryMissing, match="make build"):
        Program().find()
    monkeypatch.setenv("TALLY_BIN", str(tmp_path / "none"))
    with pytest.raises(tally.BinaryMissing, match="TALLY_BIN is .*none"):
        Program().find()
    with pytest.raises(tally.BinaryMissing, match="binary is other"):
        Program("other").find()


def test_errors_of_the_program_keep_their_hints(tmp_path: Path, program: str) -> None:
    with pytest.raises(tally.TallyError, match="no such file") as e:
        tally.verify(tmp_path / "none.bundle", home=tmp_path)
    assert e.value.message
    with pytest.raises(tally.TallyError) as e:
        Program(home=tmp_path).run("order", "ls")
    assert e.value.hint, "the program's own hint is lost"


def test_progress_goes_to_whoever_asks(tmp_path: Path) -> None:
    stream = io.StringIO()
    show = Progress(stream)
    show("one")
    show("two")
    assert stream.getvalue() == "one\ntwo\n"
    show.live = True
    show("three")
    show("4")
    show.done()
    assert stream.getvalue().endswith("\rthree\r4    \n")


@pytest.mark.parametrize("text, want", [("5 TALLY", "5tally"), ("0.25tally", "0.25tally"), (" 12 utally", "12utally")])
def test_amounts(text: str, want: str) -> None:
    assert amount(text) == want


@pytest.mark.parametrize("text", ["5", "five TALLY", "1.5 utally", "-1 TALLY", "1.1234567 TALLY", 5])
def test_amounts_that_are_none(text: str) -> None:
    with pytest.raises(tally.TallyError, match="5 TALLY"):
        amount(text)


def test_order_files_are_what_the_program_reads(tmp_path: Path) -> None:
    path = tally.write_order(tmp_path / "order.yaml", {
        "kind": "TrainingOrder", "name": "quote \" and: colon # no comment",
        "problem": {"model": "none.onnx", "data": {"source": "é.csv", "ignore": ["yes", "1"]}, "steps": 7, "frozen": ["a.*"]},
        "conditions": {"maxPrice": "5tally", "assurance": {"audit": {"auditors": 1, "segments": 1}}, "auction": False},
    })  # fmt: skip
    order = tally.Order(path, home=tmp_path, progress=False)
    assert order.kind == "TrainingOrder"
    with pytest.raises(tally.TallyError, match="none.onnx"):  # all before it was taken
        order.validate()
    with pytest.raises(tally.TallyError, match="not posted"):
        order.show()
    path.write_text("kind: Other\n")
    with pytest.raises(tally.TallyError, match="is no order"):
        tally.Order(path)


X, Y = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 2, 2])


class Items:
    """A dataset as PyTorch has them."""

    def __init__(self, items: list[object]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> object:
        return self.items[i]


@pytest.mark.parametrize(
    "dataset, loss, target, inputs, label",
    [
        ((X, Y), "", None, ("x",), "target"),
        ([X, X, Y], "", None, ("x", "mask"), "target"),
        ({"x": X, "y": Y}, "", None, ("x",), "y"),
        ({"x": X, "mask": X, "kind": Y}, "", None, ("x", "mask"), "kind"),
        ({"x": X, "a": Y, "b": Y}, "", "b", ("x",), "b"),
        ({"a": X[:, 0], "b": X[:, 1], "label": Y}, "", None, ("x",), "label"),
        (Items([(x, y) for x, y in zip(X, Y)]), "", None, ("x",), "target"),
        (Items([{"x": x, "label": int(y)} for x, y in zip(X, Y)]), "", None, ("x",), "label"),
        ((X, X), "contrastive", None, ("x", "mask"), None),
        (X.astype(int), data.TOKENS, None, ("x",), "tokens"),
        ({"tokens": X.astype(int)}, data.TOKENS, None, ("x",), "tokens"),
        ({"x": X.astype(int)}, data.TOKENS, None, ("x",), "x"),
        ({"x": X.astype(int), "mask": X}, data.TOKENS, "x", ("mask", "x"), "x"),
    ],
)  # fmt: skip
def test_datasets(dataset: object, loss: str, target: str | None, inputs: tuple[str, ...], label: str | None) -> None:
    records = data.read(dataset, ["x", "mask"], loss, target)
    assert (records.inputs, records.target, len(records)) == (inputs, label, 6)
    example = records.example(8)
    assert set(example) == set(inputs) and all(len(a) == 8 for a in example.values())
    assert example["x"].shape == (8, 1 if loss == data.TOKENS else 2)


@pytest.mark.parametrize(
    "dataset, loss, message",
    [
        ((X, Y[:3]), "", "different numbers of records"),
        ((Y,), "", "records have 1 parts"),
        ((X, X, X, Y), "", "records have 4 parts"),
        ({"x": X, "a": Y, "b": Y}, "", "target="),
        ({"other": X, "y": Y}, "", "no column is called 'x'"),
        ((np.array([["a"], ["b"]]), Y[:2]), "", "CSV"),
        (Items([(X[0], 1), (X[:, 0], 1)]), "", "different shapes"),
        (Items([]), "", "empty"),
        (5, "", "is no dataset"),
        (X, data.TOKENS, "context \\+ 1"),
    ],
)  # fmt: skip
def test_datasets_that_are_none(dataset: object, loss: str, message: str) -> None:
    with pytest.raises(tally.DataError, match=message):
        data.read(dataset, ["x", "mask"], loss)


def test_files_that_a_batch_does_not_read() -> None:
    with pytest.raises(tally.DataError, match="tally batch --help"):
        tally.batch("model.onnx", "records.csv")


def test_validation_sets_are_held_out(tmp_path: Path) -> None:
    both = data.with_validation(data.read((X, Y), ["x"]), data.read((X[:2], Y[:2]), ["x"]))
    assert both.columns[data.HELD_OUT].tolist() == [0] * 6 + [1] * 2
    with pytest.raises(tally.DataError, match="in each record"):
        data.with_validation(data.read((X, Y), ["x"]), data.read((X[:, :1], Y), ["x"]))


def test_files_of_columns_are_the_same_each_time(tmp_path: Path) -> None:
    columns = {"x": X.astype(np.float32), "y": Y}
    one, other = data.write(columns, tmp_path / "a.npz"), data.write(columns, tmp_path / "b.npz")
    assert one.read_bytes() == other.read_bytes()
    with np.load(one) as back:
        assert all((back[name] == value).all() for name, value in columns.items())
    found = Program(home=tmp_path).run("data", "inspect", one).value
    assert found["records"] == 6 and [c["kind"] for c in found["columns"]] == ["array", "integer"]


def test_what_a_file_holds_tells_what_a_module_reads() -> None:
    columns = [{"name": "length", "kind": "real"}, {"name": "colour", "kind": "category", "distinct": 3}, {"name": "kind", "kind": "category", "distinct": 2}]
    assert data.example_of(columns, ["x"], 4, "kind")["x"].shape == (4, 4)
    assert data.example_of(columns, ["x"], 4, "kind", ["colour"])["x"].shape == (4, 1)
    images = [{"name": "image", "kind": "image", "shape": [8, 6, 3], "type": "uint8"}, {"name": "label", "kind": "category", "distinct": 2}]
    assert data.example_of(images, ["x"], 4, "label")["x"].shape == (4, 3, 8, 6)


def test_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(stored({"__metadata__": {}, "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, np.array([1, 2], "<f4").tobytes()))
    assert read_safetensors(path)["a"].tolist() == [1, 2]
    for bad in (b"", b"\xff" * 8, stored({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 9]}}, bytes(8)), stored({"a": {"dtype": "F99", "shape": [2], "data_offsets": [0, 8]}}, bytes(8))):
        path.write_bytes(bad)
        with pytest.raises(tally.TallyError):
            read_safetensors(path)


@pytest.mark.parametrize("losses", [[], [1.0], [2.0, 2.0], [3.0, 1.0, 0.5], [3.0, math.nan, 1.0]])
def test_curves_are_svg(losses: list[float]) -> None:
    picture = ElementTree.fromstring(curve.svg(losses, title="a < b"))
    assert len(picture.findall("{*}circle")) == sum(map(math.isfinite, losses))


def test_results_show_themselves() -> None:
    raw = {"order": "ab" * 32, "status": "settled", "loss_first": 2.5, "losses": [2.0, 1.0], "metrics": {"accuracy": 0.5}, "price_utally": 900_000, "deposit_utally": 100_000, "refund_utally": 500_000}
    result = tally.Result(raw, 16)
    assert result.losses == [2.5, 2, 1] and result.metrics == {"accuracy": 0.5} and result.paid == 0.5
    assert "<svg" in result._repr_html_() and "settled" in repr(result)
    with pytest.raises(tally.TallyError, match="gave no model"):
        _ = result.bundle
