"""Writes pytorch.json: what PyTorch makes of the models of ../pytorch_test.go.

    python3 pytorch.py > pytorch.json

Made with PyTorch 1.13 (Debian 12: python3-torch 1.13.1, python3-numpy 1.24.2).
Weights and data follow from formulas that both sides have.
"""

import json
import math

import torch
import torch.nn.functional as F


def pattern(name, shape, scale, offset=0.0):
    """Numbers that look arbitrary, in [offset - scale, offset + scale), exact in float32."""
    seed = sum((i + 1) * c for i, c in enumerate(name.encode()))
    n = math.prod(shape)
    values = [offset + scale * (((31 * seed + 7919 * i + 13 * i * i) % 1009) / 504.5 - 1) for i in range(n)]
    return torch.tensor(values, dtype=torch.float32).reshape(shape)


class Model:
    """Parameters by name. Weights have the shape [in, out], or that of a convolution."""

    def __init__(self, dtype):
        self.dtype, self.p = dtype, {}
        self.make()

    def param(self, name, shape, scale, offset=0.0):
        self.p[name] = pattern(name, shape, scale, offset).to(self.dtype).requires_grad_()

    def linear(self, name, x):
        return x @ self.p[name + ".weight"] + self.p[name + ".bias"]

    def make_linear(self, name, inputs, outputs):
        self.param(name + ".weight", (inputs, outputs), 1.5 / inputs**0.5)
        self.param(name + ".bias", (outputs,), 0.1)


class MLP(Model):
    def make(self):
        self.make_linear("first", 12, 24)
        self.make_linear("second", 24, 24)
        self.make_linear("third", 24, 5)

    def loss(self):
        x = pattern("x", (8, 12), 1).to(self.dtype)
        y = self.linear("third", F.relu(self.linear("second", torch.tanh(self.linear("first", x)))))
        return F.mse_loss(y, pattern("target", (8, 5), 1).to(self.dtype))


class CNN(Model):
    def make(self):
        self.param("conv1.weight", (4, 1, 3, 3), 0.6)
        self.param("conv1.bias", (4,), 0.1)
        self.param("conv2.weight", (6, 4, 3, 3), 0.3)
        self.param("conv2.bias", (6,), 0.1)
        self.make_linear("head", 54, 10)

    def loss(self):
        x = pattern("image", (4, 1, 12, 12), 1).to(self.dtype)
        x = F.max_pool2d(F.relu(F.conv2d(x, self.p["conv1.weight"], self.p["conv1.bias"], padding=1)), 2)
        x = F.avg_pool2d(F.gelu(F.conv2d(x, self.p["conv2.weight"], self.p["conv2.bias"], padding=1)), 2)
        return F.cross_entropy(self.linear("head", x.flatten(1)), torch.tensor([3, 1, 4, 1]))


VOCABULARY, CONTEXT, WIDTH, HEADS, LAYERS, RECORDS, BATCH = 11, 8, 12, 2, 2, 24, 4


def records():
    """A text in which a character mostly follows from the one before it."""
    return torch.tensor([[(r + c * (r % 3 + 1) + (c * c * r) % 2) % VOCABULARY for c in range(CONTEXT + 1)] for r in range(RECORDS)])


class GPT(Model):
    def make(self):
        self.param("embedding", (VOCABULARY, WIDTH), 0.5)
        self.param("positions", (CONTEXT, WIDTH), 0.2)
        for i in range(LAYERS):
            for norm in "norm1", "norm2":
                self.make_norm(f"layer{i}.{norm}")
            self.make_linear(f"layer{i}.qkv", WIDTH, 3 * WIDTH)
            self.make_linear(f"layer{i}.out", WIDTH, WIDTH)
            self.make_linear(f"layer{i}.up", WIDTH, 4 * WIDTH)
            self.make_linear(f"layer{i}.down", 4 * WIDTH, WIDTH)
        self.make_norm("norm")

    def make_norm(self, name):
        self.param(name + ".scale", (WIDTH,), 0.1, 1)
        self.param(name + ".shift", (WIDTH,), 0.1)

    def norm(self, name, x):
        return F.layer_norm(x, (WIDTH,), self.p[name + ".scale"], self.p[name + ".shift"])

    def attention(self, name, x):
        heads = lambda v: v.reshape(-1, CONTEXT, HEADS, WIDTH // HEADS).transpose(1, 2)
        q, k, v = (heads(v) for v in self.linear(name + ".qkv", x).chunk(3, -1))
        future = torch.ones(CONTEXT, CONTEXT).triu(1).bool()
        scores = (q @ k.transpose(2, 3) / (WIDTH // HEADS) ** 0.5).masked_fill(future, -math.inf)
        y = (F.softmax(scores, -1) @ v).transpose(1, 2).reshape(-1, CONTEXT, WIDTH)
        return self.linear(name + ".out", y)

    def loss(self, step=0):
        batch = records()[[(step * BATCH + i) % RECORDS for i in range(BATCH)]]
        x = F.embedding(batch[:, :-1], self.p["embedding"]) + self.p["positions"]
        for i in range(LAYERS):
            x = x + self.attention(f"layer{i}", self.norm(f"layer{i}.norm1", x))
            x = x + self.linear(f"layer{i}.down", F.gelu(self.linear(f"layer{i}.up", self.norm(f"layer{i}.norm2", x))))
        logits = self.norm("norm", x) @ self.p["embedding"].T
        return F.cross_entropy(logits.reshape(-1, VOCABULARY), batch[:, 1:].reshape(-1))


def gradients(kind):
    """Loss and gradients in float64, and how far those of float32 are from them, relative to the norm of all."""
    exact, single = kind(torch.float64), kind(torch.float32)
    loss = exact.loss()
    loss.backward()
    single.loss().backward()
    apart = math.sqrt(sum(float(((single.p[n].grad.double() - p.grad) ** 2).sum()) for n, p in exact.p.items()))
    norm = math.sqrt(sum(float((p.grad**2).sum()) for p in exact.p.values()))
    return {
        "loss": float(f"{loss.item():.12g}"),
        "float32": float(f"{apart / norm:.3g}"),
        "gradients": {n: [float(f"{g:.9g}") for g in p.grad.flatten().tolist()] for n, p in exact.p.items()},
    }


STEPS, WARMUP, DECAY = 50, 10, 40


def train(optimizer, rate, clip=0.0, cosine=False, decay=0.0, **settings):
    """The loss of each step of a run in float64. Weight decay is for matrices alone."""
    model = GPT(torch.float64)
    groups = [
        {"params": [p for p in model.p.values() if p.dim() > 1], "weight_decay": decay},
        {"params": [p for p in model.p.values() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = optimizer(groups, lr=rate, **settings)
    losses = []
    for step in range(STEPS):
        now = rate
        if cosine:
            now *= min(1, (step + 1) / WARMUP)
            now *= (1 + math.cos(math.pi * min(1, max(0, step + 1 - WARMUP) / DECAY))) / 2
        for group in optimizer.param_groups:
            group["lr"] = now
        optimizer.zero_grad()
        loss = model.loss(step)
        loss.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(model.p.values(), clip)
        optimizer.step()
        losses.append(float(f"{loss.item():.9g}"))
    return losses


def main():
    torch.manual_seed(0)
    out = {
        "gradients": {"mlp": gradients(MLP), "cnn": gradients(CNN), "gpt": gradients(GPT)},
        "runs": {
            "sgd": train(torch.optim.SGD, 0.1, clip=1.0, momentum=0.9),
            "nesterov": train(torch.optim.SGD, 0.05, momentum=0.9, nesterov=True),
            "adam": train(torch.optim.Adam, 0.003, betas=(0.9, 0.99), eps=1e-6),
            "adamw": train(torch.optim.AdamW, 0.01, clip=1.0, cosine=True, decay=0.1, betas=(0.9, 0.95), eps=1e-6),
            "adagrad": train(torch.optim.Adagrad, 0.02, eps=1e-6),
        },
    }
    print(json.dumps(out, separators=(",", ":")))


main()
