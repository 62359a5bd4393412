"""What peers do in place of the rows of `tally bench engine`.

serve() answers on standard output: for each line on standard input, the name of
a row, one line of JSON with the median in the row's unit and the most memory in
MB that this process has held. Each process has one setting of threads, which its
environment and its argument give.
"""

import hashlib
import json
import os
import resource
import statistics
import sys
import time

ENOUGH, REPEATS = 0.7, 7  # as bench/measure.go


def median(do):
    times, begun, i = [], time.perf_counter(), 0
    while i < 2 + REPEATS or time.perf_counter() - begun < ENOUGH:
        at = time.perf_counter()
        do()
        if i >= 2:
            times.append(time.perf_counter() - at)
        i += 1
    return statistics.median(times)


def milliseconds(seconds):
    return seconds * 1e3


def product(*shape):
    import numpy as np

    *batch, m, k, n = shape
    x = np.random.default_rng(1).standard_normal((*batch, m, k), np.float32)
    y = np.random.default_rng(2).standard_normal((*batch, k, n), np.float32)
    out = np.empty((*batch, m, n), np.float32)
    work = 2 * m * k * n * (batch[0] if batch else 1)
    return lambda: np.matmul(x, y, out=out), lambda s: work / s / 1e9


def vector_product(n):
    import numpy as np

    x = np.random.default_rng(1).standard_normal((n, n), np.float32)
    y = np.random.default_rng(2).standard_normal(n, np.float32)
    return lambda: x @ y, lambda s: 4 * n * n / s / 1e9


def reading(n):
    """Reading as much memory as a product of an n×n matrix with a vector, and no more."""
    import numpy as np

    x = np.random.default_rng(1).standard_normal(n * n, np.float32)
    return lambda: x @ x, lambda s: 4 * n * n / s / 1e9


def hashing(cores):
    """The best that so many cores could do: one core's rate, times their number."""
    data = os.urandom(64 << 20)
    return lambda: hashlib.sha256(data).digest(), lambda s: cores * len(data) / s / 1e9


def way():
    return os.environ.get("WAY", "eager")


def compiled(step):
    """The step as torch.compile makes it, where that is asked for."""
    import torch

    return torch.compile(step) if way() == "compiled" else step


def gpt(vocab=96, context=128, width=256, layers=4, heads=4, batch=16):
    if way() == "jax":
        return gpt_in_jax(vocab, context, width, layers, heads, batch)
    import torch
    from torch import nn
    from torch.nn import functional as f

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, mask):
            q, k, v = (
                y.view(batch, context, heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(width, -1)
            )
            if way() == "eager":
                scores = q @ k.transpose(-2, -1) * (width // heads) ** -0.5 + mask
                y = scores.softmax(-1) @ v
            else:
                y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
            y = y.transpose(1, 2).reshape(batch, context, width)
            x = x + self.out(y)
            return x + self.down(f.gelu(self.up(self.norm2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.positions = nn.Embedding(vocab, width), nn.Parameter(torch.randn(context, width) * 0.1)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)

        def forward(self, tokens, mask):
            x = self.embedding(tokens) + self.positions
            for block in self.blocks:
                x = block(x, mask)
            return self.head(self.norm(x))

    model, mask = Model(), torch.full((context, context), -1e9).triu(1)
    tokens = torch.randint(vocab, (batch, context + 1))
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=way() != "eager"
    )

    def loss():
        logits = model(tokens[:, :-1], mask)
        return f.cross_entropy(logits.reshape(-1, vocab), tokens[:, 1:].reshape(-1))

    loss = compiled(loss)

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step, lambda s: batch * context / s


def gpt_in_jax(vocab, context, width, layers, heads, batch):
    import jax
    import numpy as np
    from jax import numpy as jnp

    random = np.random.default_rng(1)
    normal = lambda *shape: jnp.asarray(random.standard_normal(shape, np.float32) * 0.02)
    linear = lambda a, b: {"w": normal(a, b), "b": jnp.zeros(b)}
    norm = lambda: {"w": jnp.ones(width), "b": jnp.zeros(width)}
    block = lambda: {
        "norm1": norm(), "norm2": norm(), "qkv": linear(width, 3 * width), "out": linear(width, width),
        "up": linear(width, 4 * width), "down": linear(4 * width, width),
    }  # fmt: skip
    params = {
        "embedding": normal(vocab, width), "positions": normal(context, width),
        "blocks": [block() for _ in range(layers)], "norm": norm(), "head": normal(width, vocab),
    }  # fmt: skip
    causal = jnp.triu(jnp.full((context, context), -1e9), 1)

    def normalise(p, x):
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["w"] + p["b"]

    def apply(p, x):
        return x @ p["w"] + p["b"]

    def attend(p, x):
        q, k, v = (
            y.reshape(batch, context, heads, -1).transpose(0, 2, 1, 3) for y in jnp.split(apply(p["qkv"], x), 3, -1)
        )
        scores = q @ k.swapaxes(-2, -1) * (width // heads) ** -0.5 + causal
        y = (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3).reshape(batch, context, width)
        return apply(p["out"], y)

    def loss(params, tokens):
        x = params["embedding"][tokens[:, :-1]] + params["positions"]
        for p in params["blocks"]:
            x = x + attend(p, normalise(p["norm1"], x))
            x = x + apply(p["down"], jax.nn.gelu(apply(p["up"], normalise(p["norm2"], x))))
        logits = jax.nn.log_softmax(normalise(params["norm"], x) @ params["head"])
        return -jnp.take_along_axis(logits, tokens[:, 1:, None], -1).mean()

    def adamw(p, g, m, v, t, rate=3e-3, b1=0.9, b2=0.99, decay=0.1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        return p * (1 - rate * decay) - rate * (m / (1 - b1**t)) / (jnp.sqrt(v / (1 - b2**t)) + 1e-8), m, v

    def train(state, tokens):
        params, m, v, t = state
        grads = jax.grad(loss)(params, tokens)
        new = jax.tree.map(lambda p, g, m, v: adamw(p, g, m, v, t + 1), params, grads, m, v)
        part = lambda i: jax.tree.map(lambda x: x[i], new, is_leaf=lambda x: isinstance(x, tuple))
        return part(0), part(1), part(2), t + 1

    zeros = lambda: jax.tree.map(jnp.zeros_like, params)
    train = jax.jit(train, donate_argnums=0)
    tokens = jnp.asarray(random.integers(0, vocab, (batch, context + 1)))
    state = [(params, zeros(), zeros(), jnp.float32(0))]

    def step():
        state[0] = jax.block_until_ready(train(state[0], tokens))

    return step, lambda s: batch * context / s


def image_step(model, *shape):
    import torch
    from torch.nn import functional as f

    images, labels = torch.randn(*shape), torch.randint(10, shape[:1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss = compiled(lambda: f.cross_entropy(model(images), labels))

    def step():
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return step, milliseconds


def lenet():
    from torch import nn

    return image_step(
        nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        ),
        64, 1, 28, 28,
    )  # fmt: skip


def resnet():
    from torch import nn
    from torch.nn import functional as f

    def conv(a, b, kernel, stride):
        return nn.Sequential(nn.Conv2d(a, b, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(b))

    class Block(nn.Module):
        def __init__(self, a, b, stride):
            super().__init__()
            self.first, self.second = conv(a, b, 3, stride), conv(b, b, 3, 1)
            self.short = conv(a, b, 1, stride) if a != b else nn.Identity()

        def forward(self, x):
            return f.relu(self.short(x) + self.second(f.relu(self.first(x))))

    parts, last = [conv(3, 64, 3, 1), nn.ReLU()], 64
    for stage, width in enumerate((64, 128, 256, 512)):
        for block in range(2):
            parts.append(Block(last, width, 2 if stage and not block else 1))
            last = width
    parts += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10)]
    return image_step(nn.Sequential(*parts), 32, 3, 32, 32)


def table(last):
    """Half a million cells, in ten columns of comma-separated values."""
    import io
    import random

    import pandas

    r = random.Random(1)
    cell = {
        "integers": lambda: str(r.randrange(100_000)), "rounded": lambda: f"{100 * r.gauss(0, 1):.3f}", "doubles": lambda: repr(r.random()),
        "categories": lambda: f"category {r.randrange(100)}",
    }[last]  # fmt: skip
    text = "a,b,c,d,e,f,g,h,i,j\n" + "".join(",".join(cell() for _ in range(10)) + "\n" for _ in range(50_000))
    b = text.encode()
    return lambda: pandas.read_csv(io.BytesIO(b), engine="c"), lambda s: len(b) / s / 1e9


def given(session):
    """Random inputs of a model: normal numbers, or small whole ones, as tokens are."""
    import numpy as np

    random = np.random.default_rng(1)
    kinds = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}
    inputs = {}
    for x in session.get_inputs():
        kind = kinds[x.type]
        values = random.standard_normal(x.shape) if kind is np.float32 else random.integers(0, 100, x.shape)
        inputs[x.name] = values.astype(kind)
    return inputs


def inference(path, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    inputs = given(session)
    return lambda: session.run(None, inputs), milliseconds


def work(name, threads, models):
    """What stands against a row, as (do, figure)."""
    kind, *_, last, _ = name.split("/")
    if kind == "infer":
        return inference(os.path.join(models, last + ".onnx"), threads)
    if kind == "csv":
        return table(last)
    if kind == "gemm":
        shape = [int(x) for x in last.split("x")]
        return product(*(shape if len(shape) > 1 else shape * 3))
    return {
        "gemv/changing/4096": lambda: vector_product(4096),
        "gemv/fp32/4096": lambda: reading(4096),
        "root/sha256": lambda: hashing(threads),
        "train/gpt/tokens_per_s": gpt,
        "train/lenet/step_ms": lenet,
        "train/resnet/step_ms": resnet,
    }[name.rpartition("/")[0]]()


def serve(threads, models):
    made = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in made:
            made = {name: work(name, threads, models)}
        do, figure = made[name]
        value = figure(median(do))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
        print(json.dumps({"value": value, "memory": memory}), flush=True)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2])
