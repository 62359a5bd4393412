"""Modules of PyTorch as graphs: the same weights, the same losses, and nothing left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import write_safetensors

import tally
from tally.exporter import input_names

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
nn, F = torch.nn, torch.nn.functional

if not torch.cuda.is_available():  # transformers asks, and a CUDA library that bench/peers/gpuless.py stands in for crashes
    torch.cuda.graphs._cuda_isCurrentStreamCapturing = lambda: False

BATCH = 8


class CNN(nn.Module):
    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4)
        self.channels, self.drop, self.head = nn.Dropout2d(drop), nn.Dropout(drop), nn.Linear(36, 3)

    def forward(self, image: Any) -> Any:
        x = F.max_pool2d(torch.relu(self.norm(self.conv(image))), 2)
        return self.head(self.drop(self.channels(x)).flatten(1))


class Tagger(nn.Module):
    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(5, 6, num_layers=2, batch_first=True, bidirectional=True, dropout=drop), nn.Linear(12, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


class ViT(nn.Module):
    def __init__(self, drop: float = 0.0) -> None:
        super().__init__()
        self.patches, self.token = nn.Conv2d(1, 16, 4, 4), nn.Parameter(torch.randn(1, 1, 16))
        self.register_buffer("place", torch.randn(1, 5, 16))
        self.encoder, self.head = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32, drop, batch_first=True), 1), nn.Linear(16, 3)

    def forward(self, image: Any) -> Any:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.place
        return self.head(self.encoder(x)[:, 0])


def mlp(drop: float = 0.0) -> Any:
    return nn.Sequential(nn.Linear(5, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(drop), nn.Linear(16, 3))


def gpt2(drop: float = 0.0) -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    rates = {name: drop for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop")}
    return GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=8, n_embd=16, n_layer=1, n_head=2, use_cache=False, bos_token_id=0, eos_token_id=0, **rates))


def llama(drop: float = 0.0) -> Any:
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    return LlamaForCausalLM(LlamaConfig(vocab_size=20, max_position_embeddings=8, use_cache=False, attention_dropout=drop, **sizes))


FLAT, IMAGES, SERIES, TOKENS = (5,), (1, 8, 8), (4, 5), None
MODELS: dict[str, tuple[Callable[..., Any], Any, int]] = {  # how it is made, what it reads, how many Dropouts it has
    "mlp": (mlp, FLAT, 1), "cnn": (CNN, IMAGES, 2), "lstm": (Tagger, SERIES, 1), "vit": (ViT, IMAGES, 4),
    "gpt2": (gpt2, TOKENS, 4), "llama": (llama, TOKENS, 1),
}  # fmt: skip


def records(shape: Any, n: int = BATCH) -> tuple[Any, ...]:
    torch.manual_seed(2)
    if shape is TOKENS:
        return (torch.randint(20, (n, 9)),)
    return torch.randn(n, *shape), torch.randint(3, (n,))


def made(name: str, drop: float = 0.0) -> tuple[Any, tuple[Any, ...], str]:
    if name in ("gpt2", "llama"):
        pytest.importorskip("transformers")
    torch.manual_seed(1)
    make, shape, _ = MODELS[name]
    return make(drop), records(shape), "next-token-cross-entropy" if shape is TOKENS else "cross-entropy"


def example(module: Any, data: tuple[Any, ...]) -> dict[str, Any]:
    x = data[0][:, :-1] if len(data) == 1 else data[0]
    return {input_names(module)[0]: x.numpy()}


def theirs(module: Any, data: tuple[Any, ...]) -> float:
    """Returns PyTorch's loss of a batch in training mode."""
    module.train()
    if len(data) == 1:
        return float(F.cross_entropy(module(data[0][:, :-1]).logits.flatten(0, 1), data[0][:, 1:].flatten()).detach())
    return float(F.cross_entropy(module(data[0]), data[1]).detach())


@pytest.mark.parametrize("name", MODELS)
def test_the_order_starts_with_the_loss_of_pytorch(name: str, inside: Path) -> None:
    module, data, loss = made(name)
    # As many records as a batch: the first step reads all of them, whatever their order.
    order = tally.prepare(module, data if len(data) > 1 else data[0], loss=loss, validation=data if len(data) > 1 else data[0], batch=BATCH, steps=1, rounds=1, shards=1, home=inside, progress=False)
    tried = order.validate()
    assert tried["records"] == BATCH
    assert tried["loss_first"] == pytest.approx(theirs(module, data), rel=1e-4)
    trained = {n for n, weight in module.named_parameters() if weight.requires_grad}
    tied = {n for n, _ in module.named_parameters(remove_duplicate=False)}
    assert set(tried["trained"]) <= tied and len(tried["trained"]) == len(trained), "what training changes are the parameters, and no buffers"


@pytest.mark.parametrize("name", MODELS)
def test_initializers_are_the_state_dict(name: str, tmp_path: Path, program: str) -> None:
    module, data, _ = made(name, drop=0.1)
    before = {n: w.clone() for n, w in module.state_dict().items()}
    module.eval()
    written = tally.export(module, example(module, data), tmp_path / "model.onnx")
    graph = onnx.load(written.path).graph
    held = {i.name: onnx.numpy_helper.to_array(i) for i in graph.initializer}
    places = {w.data_ptr() for n, w in module.state_dict().items() if n in held}
    for n, weight in module.state_dict(keep_vars=True).items():
        if n.endswith("num_batches_tracked"):
            continue
        assert n in held or weight.data_ptr() in places, f"{n} is not in the graph"
        if n in held:
            assert held[n].shape == tuple(weight.shape) and (held[n] == weight.detach().numpy()).all()
    buffers = {n for n, _ in module.named_buffers()}
    assert held.keys() <= before.keys() | buffers
    assert set(written.frozen) == {n for n in held if n in buffers and "running_" not in n}
    assert not module.training and all((w == before[n]).all() for n, w in module.state_dict().items()), "the module has changed"
    drops = [node for node in graph.node if node.op_type == "Dropout"]
    assert len(drops) == MODELS[name][2] and all(len(node.input) == 2 for node in drops)


def test_texts_want_an_example(inside: Path) -> None:
    (inside / "texts.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    with pytest.raises(tally.DataError, match="example="):
        tally.prepare(gpt2(), "texts.jsonl", loss="next-token-cross-entropy")
    assert [path.name for path in inside.iterdir()] == ["texts.jsonl"], "files of an order that is none are left"


def test_the_model_that_is_applied_has_no_dropout(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    module, data, _ = made("cnn", drop=0.5)
    theirs(module, data)  # moves the running statistics
    for trained in (True, False):
        written = tally.export(module, {"image": data[0].numpy()}, tmp_path / "model.onnx", trained=trained)
        ours = ort.InferenceSession(str(written.path)).run(None, {"image": data[0].numpy()})[0]
        assert np.allclose(ours, module.eval()(data[0]).detach().numpy(), atol=1e-5)


def test_parts_that_do_not_train_stay(tmp_path: Path) -> None:
    module = mlp()
    module[1].eval()
    module[0].weight.requires_grad_(False)
    written = tally.export(module, {"input": np.zeros((4, 5), "f4")}, tmp_path / "model.onnx")
    assert set(written.frozen) == {"0.weight", "1.running_mean", "1.running_var"}
    assert module.training and not module[1].training


class Splits(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(5, 6)

    def forward(self, x: Any) -> Any:
        a, b = self.line(x).split(4, dim=-1)
        c, d, e = self.line(x).split([1, 2, 3], -1)
        f, g = self.line(x).chunk(2, -1)
        return torch.cat([b, a, e, d, c, g, f], -1)


def test_splits_are_slices(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    module, x = Splits(), torch.randn(4, 5)
    written = tally.export(module, {"x": x.numpy()}, tmp_path / "model.onnx")
    assert not {"SplitToSequence", "SequenceAt"} & {node.op_type for node in onnx.load(written.path).graph.node}
    assert np.allclose(ort.InferenceSession(str(written.path)).run(None, {"x": x.numpy()})[0], module(x).detach().numpy(), atol=1e-6)


class Two(nn.Module):
    def forward(self, b: Any, unread: Any, a: Any) -> Any:
        return b - 2 * a


def test_inputs_have_the_names_of_forward(tmp_path: Path) -> None:
    ort = pytest.importorskip("onnxruntime")
    given = {name: np.random.default_rng(i).normal(size=(4, 3)).astype("f4") for i, name in enumerate(("b", "unread", "a"))}
    written = tally.export(Two(), given, tmp_path / "model.onnx")
    session = ort.InferenceSession(str(written.path))
    got = session.run(None, {i.name: given[i.name] for i in session.get_inputs()})[0]
    assert set(written.inputs) <= given.keys() and np.allclose(got, given["b"] - 2 * given["a"], atol=1e-6)


class Shared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line, self.norm = nn.Linear(5, 5), nn.BatchNorm1d(5)

    def forward(self, x: Any) -> Any:
        return self.norm(self.line(self.norm(x)))


class Branches(nn.Module):
    def forward(self, x: Any) -> Any:
        return x if x.sum() > 0 else -x


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(5, 5), nn.AlphaDropout(0.1))

    def forward(self, x: Any) -> Any:
        return self.inner(x)


class Wordless(nn.Module):
    def forward(self, x: Any) -> Any:
        return str(x.shape)


@pytest.mark.parametrize(
    "make, message",
    [
        (Noisy, r"inner\.1 \(AlphaDropout\) draws at random"),
        (Shared, r"norm \(BatchNorm1d\) is applied more than once"),
        (Branches, "cannot export Branches"),
        (Wordless, "forward returns str"),
        (lambda: nn.Sequential(nn.BatchNorm1d(5, momentum=None)), r"0 \(BatchNorm1d\) averages over all"),
        (lambda: nn.Sequential(nn.BatchNorm1d(5, track_running_stats=False)), r"0 \(BatchNorm1d\) keeps no"),
        (lambda: nn.Linear(5, 5).half(), r"weight is torch\.float16"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_named(make: Callable[[], Any], message: str, tmp_path: Path) -> None:
    module = make()
    with pytest.raises(tally.ExportError, match=message):
        tally.export(module, {input_names(module)[0]: np.zeros((4, 5), "f4")}, tmp_path / "model.onnx")
    assert module.training


def test_weights_are_loaded_in_place(tmp_path: Path) -> None:
    module, _, _ = made("gpt2")
    names = [n for n in module.state_dict() if n != "transformer.wte.weight"]  # which is tied to lm_head.weight
    trained = {n: np.random.default_rng(0).normal(size=tuple(module.state_dict()[n].shape)).astype("f4") for n in names}
    path = write_safetensors(tmp_path / "model.safetensors", trained)
    weight = module.lm_head.weight
    assert tally.load(module, path) == names
    assert module.lm_head.weight is weight and module.transformer.wte.weight is weight
    assert all((w.detach().numpy() == trained[n]).all() for n, w in module.state_dict().items() if n in trained)
    for wrong, message in ((mlp(), "are no weights of Sequential"), (gpt2(), None)):
        if message:
            with pytest.raises(tally.TallyError, match=message):
                tally.load(wrong, path)
    trained["lm_head.weight"] = trained["lm_head.weight"][:5]
    with pytest.raises(tally.TallyError, match=r"lm_head.weight is \[5, 16\]"):
        tally.load(module, write_safetensors(path, trained))
