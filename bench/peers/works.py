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


def hashing(cores):
    """The best that so many cores could do: one core's rate, times their number."""
    data = os.urandom(64 << 20)
    return lambda: hashlib.sha256(data).digest(), lambda s: cores * len(data) / s / 1e9


def gpt(vocab=96, context=128, width=256, layers=4, heads=4, batch=16):
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
            scores = q @ k.transpose(-2, -1) * (width // heads) ** -0.5 + mask
            y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, context, width)
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
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.99), weight_decay=0.1)

    def step():
        optimizer.zero_grad()
        logits = model(tokens[:, :-1], mask)
        f.cross_entropy(logits.reshape(-1, vocab), tokens[:, 1:].reshape(-1)).backward()
        optimizer.step()

    return step, lambda s: batch * context / s


def image_step(model, *shape):
    import torch
    from torch.nn import functional as f

    images, labels = torch.randn(*shape), torch.randint(10, shape[:1])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step():
        optimizer.zero_grad()
        f.cross_entropy(model(images), labels).backward()
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


def inference(path, threads):
    import numpy as np
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = threads, 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    given = {x.name: np.random.default_rng(1).standard_normal(x.shape).astype(np.float32) for x in session.get_inputs()}
    return lambda: session.run(None, given), milliseconds


def work(name, threads, models):
    """What stands against a row, as (do, figure)."""
    parts = name.split("/")
    if parts[0] == "infer":
        return inference(os.path.join(models, parts[1] + ".onnx"), threads)
    return {
        "gemm/fp32/512": lambda: product(512, 512, 512),
        "gemm/fp32/1024": lambda: product(1024, 1024, 1024),
        "gemm/fp32/2048": lambda: product(2048, 2048, 2048),
        "gemm/fp32/16x4096x4096": lambda: product(16, 4096, 4096),
        "gemm/batched/64x128x64x128": lambda: product(64, 128, 64, 128),
        "gemv/fp32/4096": lambda: vector_product(4096),
        "root/sha256": lambda: hashing(threads),
        "train/gpt/tokens_per_s": gpt,
        "train/lenet/step_ms": lenet,
        "train/resnet/step_ms": resnet,
    }["/".join(parts[:-1])]()


def serve(threads, models):
    if "TORCH_THREADS" in os.environ:
        import torch

        torch.set_num_threads(int(os.environ["TORCH_THREADS"]))
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
