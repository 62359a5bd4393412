"""Writes pytorch.json: what PyTorch computes for the models of cases.json, forward and backward.

    pip install torch torchvision timm onnx
    python make.py TALLY

TALLY is the program: it makes the models, whose weights PyTorch's modules take by their names. Input and the
weights of the loss are patterns. Of each gradient one number is kept: its product with a pattern.
Everything is computed in float64. gpt alone has names and layouts of its own, which are translated.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import onnx
import timm
import torch
import torchvision
from onnx import numpy_helper
from torch import nn

here = pathlib.Path(__file__).parent


def pattern(shape, step, period):
    n = torch.Size(shape).numel()
    return ((torch.arange(n) * step % period - period // 2) / (period // 2)).to(torch.float64).reshape(shape)


class MLP(nn.Module):
    def __init__(self, s, act):
        super().__init__()
        sizes = [s["inputs"]] + [s["width"]] * s["layers"] + [s["classes"] or s["outputs"]]
        self.n, self.act = len(sizes) - 1, act
        for i in range(self.n):
            setattr(self, f"fc{i + 1}", nn.Linear(sizes[i], sizes[i + 1]))

    def forward(self, x):
        for i in range(self.n - 1):
            x = self.act(getattr(self, f"fc{i + 1}")(x))
        return getattr(self, f"fc{self.n}")(x)


class LeNet(nn.Module):
    def __init__(self, s, act):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(s["channels"], 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        side = (s["size"] // 2 - 4) // 2
        self.fc1, self.fc2, self.fc3 = nn.Linear(16 * side * side, 120), nn.Linear(120, 84), nn.Linear(84, s["classes"] or s["outputs"])
        self.act = act
        self.pool = {"max": nn.MaxPool2d(2), "average": nn.AvgPool2d(2)}[s["pooling"]]

    def forward(self, x):
        x = self.pool(self.act(self.conv2(self.pool(self.act(self.conv1(x))))))
        return self.fc3(self.act(self.fc2(self.act(self.fc1(x.flatten(1))))))


def norm_layer(s):
    return nn.BatchNorm2d if s["norm"] == "batch" else lambda c: nn.GroupNorm(s["groups"], c)


def resnet(s):
    block = torchvision.models.resnet.BasicBlock
    m = torchvision.models.ResNet(block, [s["blocks"]] * 4, num_classes=s["classes"] or s["outputs"], norm_layer=norm_layer(s))
    norm, w = norm_layer(s), s["width"]
    m.inplanes, m.dilation = w, 1
    large = s["stem"] == "large"
    m.conv1 = nn.Conv2d(s["channels"], w, 7, 2, 3, bias=False) if large else nn.Conv2d(s["channels"], w, 3, 1, 1, bias=False)
    m.bn1 = norm(w)
    if not large:
        m.maxpool = nn.Identity()
    for i in range(4):
        layer = m._make_layer(block, w << i, s["blocks"], 2 if i else 1) if i < s["stages"] else nn.Identity()
        setattr(m, f"layer{i + 1}", layer)
    m.fc = nn.Linear(w << (s["stages"] - 1), s["classes"] or s["outputs"])
    return m


def vit(s):
    return timm.models.vision_transformer.VisionTransformer(
        img_size=s["size"], patch_size=s["patch"], in_chans=s["channels"], num_classes=s["classes"] or s["outputs"],
        embed_dim=s["width"], depth=s["layers"], num_heads=s["heads"])


class LSTM(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.lstm = nn.LSTM(s["inputs"], s["width"], s["layers"], batch_first=True)
        self.fc = nn.Linear(s["width"], s["classes"] or s["outputs"])

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])


# The modules of milesial/Pytorch-UNet, with other numbers of levels and norms.
class DoubleConv(nn.Module):
    def __init__(self, i, o, norm):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1, bias=False), norm(o), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1, bias=False), norm(o), nn.ReLU())

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, i, o, norm):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(i, o, norm))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, i, o, norm):
        super().__init__()
        self.up, self.conv = nn.ConvTranspose2d(i, i // 2, 2, stride=2), DoubleConv(i, o, norm)

    def forward(self, x, skip):
        return self.conv(torch.cat([skip, self.up(x)], 1))


class OutConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv2d(i, o, 1)

    def forward(self, x):
        return self.conv(x)


class UNet(nn.Module):
    def __init__(self, s):
        super().__init__()
        w, norm, self.depth = s["width"], norm_layer(s), s["depth"]
        self.inc, self.outc = DoubleConv(s["channels"], w, norm), OutConv(w, s["classes"] or s["outputs"])
        for i in range(self.depth):
            setattr(self, f"down{i + 1}", Down(w << i, w << (i + 1), norm))
            setattr(self, f"up{i + 1}", Up(w << (self.depth - i), w << (self.depth - i - 1), norm))

    def forward(self, x):
        x, skips = self.inc(x), []
        for i in range(self.depth):
            skips.append(x)
            x = getattr(self, f"down{i + 1}")(x)
        for i in range(self.depth):
            x = getattr(self, f"up{i + 1}")(x, skips.pop())
        return self.outc(x)


class GPT(nn.Module):
    """Of PyTorch's own layers of transformers, under the names of ours."""

    def __init__(self, s):
        super().__init__()
        w = s["width"]
        self.embedding, self.positions = nn.Parameter(torch.empty(s["vocabulary"], w)), nn.Parameter(torch.empty(s["context"], w))
        gelu = nn.GELU(approximate="tanh")
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(w, s["heads"], 4 * w, 0, gelu, batch_first=True, norm_first=True) for _ in range(s["layers"]))
        self.norm = nn.LayerNorm(w)
        self.head = None if s["tied"] == "yes" else nn.Parameter(torch.empty(w, s["vocabulary"]))

    def forward(self, tokens):
        x = self.embedding[tokens] + self.positions
        mask = torch.triu(torch.full((x.shape[1], x.shape[1]), float("-inf"), dtype=x.dtype), 1)
        for layer in self.layers:
            x = layer(x, src_mask=mask)
        return self.norm(x) @ (self.embedding.T if self.head is None else self.head)

    def ours(self):
        """Parameters by our names, and whether ours are transposed."""
        out = {"embedding": (self.embedding, False), "positions": (self.positions, False)}
        for i, l in enumerate(self.layers):
            parts = {
                "norm1.scale": l.norm1.weight, "norm1.shift": l.norm1.bias, "norm2.scale": l.norm2.weight, "norm2.shift": l.norm2.bias,
                "attention.qkv.weight": l.self_attn.in_proj_weight, "attention.qkv.bias": l.self_attn.in_proj_bias,
                "attention.out.weight": l.self_attn.out_proj.weight, "attention.out.bias": l.self_attn.out_proj.bias,
                "feedforward.up.weight": l.linear1.weight, "feedforward.up.bias": l.linear1.bias,
                "feedforward.down.weight": l.linear2.weight, "feedforward.down.bias": l.linear2.bias}
            out |= {f"layer{i}.{name}": (p, p.dim() == 2) for name, p in parts.items()}
        out |= {"norm.scale": (self.norm.weight, False), "norm.shift": (self.norm.bias, False)}
        return out if self.head is None else out | {"head": (self.head, False)}


def module(name, s):
    act = {"relu": nn.ReLU(), "gelu": nn.GELU(), "tanh": nn.Tanh(), "sigmoid": nn.Sigmoid()}.get(s.get("activation"))
    return {
        "gpt": lambda: GPT(s), "mlp": lambda: MLP(s, act), "lenet": lambda: LeNet(s, act), "resnet": lambda: resnet(s),
        "vit": lambda: vit(s), "lstm": lambda: LSTM(s), "unet": lambda: UNet(s)}[name]()


def settings(tally, name, text):
    table = json.loads(subprocess.run([tally, "model", "new", "--json"], capture_output=True, check=True).stdout)
    s = {x["name"]: x["default"] for a in table if a["name"] == name for x in a["settings"]}
    s |= dict(part.split("=") for part in text.split(","))
    return {k: int(v) if v.isdigit() else v for k, v in s.items()}


def case(tally, c):
    s = settings(tally, c["architecture"], c["settings"])
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([tally, "model", "new", c["architecture"], "--set", c["settings"], "--seed", "3", "--out", f"{d}/m.onnx"], stdout=subprocess.DEVNULL, check=True)
        model = onnx.load(f"{d}/m.onnx")
    onnx.checker.check_model(model, full_check=True)
    weights = {t.name: torch.tensor(numpy_helper.to_array(t)).double() for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT}
    m = module(c["architecture"], s).double().eval()
    if c["architecture"] == "gpt":
        ours = m.ours()
        assert set(ours) == set(weights), set(ours) ^ set(weights)
        for name, (p, turned) in ours.items():
            p.data = weights[name].T.contiguous() if turned else weights[name]
    else:
        ours = {name: (p, False) for name, p in m.named_parameters()}
        told = m.load_state_dict(weights, strict=False)
        assert not told.unexpected_keys and all(k.endswith("num_batches_tracked") for k in told.missing_keys), told
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    if c["architecture"] == "gpt":
        n = torch.Size(shape).numel()
        x = ((torch.arange(n) * 7 + 3) % s["vocabulary"]).reshape(shape)
    else:
        x = pattern(shape, 37, 101).float().double()
    y = m(x)
    (y * pattern(y.shape, 53, 97).float().double()).sum().backward()
    gradients = {}
    for name, (p, turned) in sorted(ours.items()):
        g = p.grad.T.contiguous() if turned else p.grad
        gradients[name] = [float(f"{v:.9g}") for v in ((g.flatten() * pattern([g.numel()], 29, 89)).sum().item(), g.norm().item())]
    return {"output": [float(f"{v:.9g}") for v in y.flatten().tolist()], "gradients": gradients}


cases = json.loads((here / "cases.json").read_text())
torch.manual_seed(0)
out = {name: case(sys.argv[1], c) for name, c in cases.items()}
lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(v, separators=(',', ':'))}" for name, v in out.items())
(here / "pytorch.json").write_text("{\n" + lines + "\n}\n")
