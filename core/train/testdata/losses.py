"""Writes losses.json: what PyTorch makes of small models under every loss, in float64.

    python losses.py > losses.json
"""

import json
import math

import torch
import torch.nn.functional as F

RECORDS, BATCH, STEPS, RATE = 24, 4, 50, 0.25


def numbers(n, start):
    """The numbers of the test: exact in float32, and all else follows from them."""
    return torch.tensor([((i * 37 + start * 101) % 64 - 32) / 32 for i in range(n)], dtype=torch.float64)


def parameters(inputs, outputs, seed):
    w = numbers(inputs * outputs, seed).reshape(inputs, outputs).clone().requires_grad_()
    b = numbers(outputs, seed + 1).clone().requires_grad_()
    return w, b


def rows(step):
    return [(step * BATCH + i) % RECORDS for i in range(BATCH)]


def train(params, loss):
    out = []
    for step in range(STEPS):
        value = loss(rows(step))
        out.append(value.item())
        grads = torch.autograd.grad(value, params)
        with torch.no_grad():
            for p, g in zip(params, grads):
                p -= RATE * g
    return out


features = numbers(RECORDS * 6, 3).reshape(RECORDS, 6)
labels = torch.tensor([(7 * r + r * r) % 5 for r in range(RECORDS)])
counted = torch.tensor([0 if r % 3 == 1 else 1 for r in range(RECORDS)], dtype=torch.float64)
values = numbers(RECORDS * 3, 9).reshape(RECORDS, 3)
truths = torch.tensor([[(r + c) % 3 == 0 for c in range(3)] for r in range(RECORDS)], dtype=torch.float64)
weights = torch.tensor([1, 0.5, 2, 0.25, 1.5], dtype=torch.float64)
tokens = torch.tensor([[(r + c * (r % 3 + 1) + c * c * r % 2) % 7 for c in range(6)] for r in range(RECORDS)])
other = torch.tensor([[(2 * r + c * (r % 4 + 1)) % 7 for c in range(6)] for r in range(RECORDS)])
spoken = torch.tensor([[1 if c >= 2 + r % 3 else 0 for c in range(6)] for r in range(RECORDS)], dtype=torch.float64)
hidden = torch.tensor([[t if (r + c) % 4 == 0 else -100 for c, t in enumerate(row)] for r, row in enumerate(tokens.tolist())])


def linear(outputs, of):
    w, b = parameters(6, outputs, 5)
    return train([w, b], lambda at: of(features[at] @ w + b, at))


def masked(losses, at):
    return (losses * counted[at]).sum() / counted[at].sum()


def language(of):
    e = numbers(49, 2).reshape(7, 7).clone().requires_grad_()
    w, b = parameters(7, 7, 5)
    return train([e, w, b], lambda at: of(lambda x: torch.tanh(e[x]) @ w + b, at))


def log_likelihood(logits, tokens, mask):
    picked = F.log_softmax(logits, -1).gather(-1, tokens[:, 1:, None])[..., 0]
    return (picked * mask[:, 1:]).sum(-1)


def preference():
    def params():
        w, b = parameters(7, 7, 5)
        return numbers(49, 2).reshape(7, 7).clone().requires_grad_(), w, b

    now, before = params(), [p.detach() for p in params()]

    def model(p, x):
        return torch.tanh(p[0][x]) @ p[1] + p[2]

    def loss(at):
        def gap(t):
            of = [log_likelihood(model(p, t[at][:, :-1]), t[at], spoken[at]) for p in (now, before)]
            return of[0] - of[1]

        return -F.logsigmoid(0.5 * (gap(tokens) - gap(other))).mean()

    return train(list(now), loss)


def contrastive():
    v, c = parameters(6, 4, 5)
    w, d = parameters(3, 4, 8)

    def loss(at):
        a = F.normalize(features[at] @ v + c)
        b = F.normalize(values[at] @ w + d)
        alike = a @ b.T / 0.5
        own = torch.arange(BATCH)
        return (F.cross_entropy(alike, own) + F.cross_entropy(alike.T, own)) / 2

    return train([v, c, w, d], loss)


def chat(logits, at):
    x, y, m = tokens[at][:, :-1], tokens[at][:, 1:], spoken[at][:, 1:]
    losses = F.cross_entropy(logits(x).reshape(-1, 7), y.reshape(-1), reduction="none")
    return (losses * m.reshape(-1)).sum() / m.sum()


def apart(model, teacher, temperature):
    """How far predictions are from the teacher's, each times the square of the temperature."""
    p, q = F.log_softmax(model / temperature, -1), F.softmax(teacher / temperature, -1)
    return F.kl_div(p, q, reduction="none").sum(-1) * temperature**2


def teacher(x):
    w, b = parameters(6, 5, 11)
    return (x @ w + b).detach()


def reader(x):
    """The teacher of language models."""
    w, b = parameters(7, 7, 21)
    return (torch.tanh(numbers(49, 13).reshape(7, 7)[x]) @ w + b).detach()


def distilled(y, at):
    return 0.5 * F.cross_entropy(y, labels[at]) + 0.5 * F.kl_div(F.log_softmax(y / 2, -1), F.softmax(teacher(features[at]) / 2, -1), reduction="batchmean") * 4


def weighed(y, at):
    losses = F.cross_entropy(y, labels[at], weight=weights, label_smoothing=0.25, reduction="none")
    c = weights[labels[at]]
    return (0.75 * losses + 0.25 * c * apart(y, teacher(features[at]), 3)).sum() / c.sum()


def taught_chat(logits, at):
    x, y, m = tokens[at][:, :-1], tokens[at][:, 1:], spoken[at][:, 1:]
    losses = F.cross_entropy(logits(x).transpose(1, 2), y, reduction="none")
    return ((0.5 * losses + 0.5 * apart(logits(x), reader(x), 2)) * m).sum() / m.sum()


def taught_hidden(logits, at):
    x, y = tokens[at], hidden[at]
    losses = F.cross_entropy(logits(x).transpose(1, 2), y, reduction="none")
    return (0.25 * losses + 0.75 * apart(logits(x), reader(x), 4))[y != -100].mean()


print(json.dumps({
    "cross-entropy": linear(5, lambda y, at: F.cross_entropy(y, labels[at])),
    "cross-entropy, smoothed and weighted": linear(5, lambda y, at: F.cross_entropy(y, labels[at], weight=weights, label_smoothing=0.25)),
    "cross-entropy, masked": linear(5, lambda y, at: masked(F.cross_entropy(y, labels[at], reduction="none"), at)),
    "binary-cross-entropy": linear(3, lambda y, at: F.binary_cross_entropy_with_logits(y, truths[at])),
    "binary-cross-entropy, weighted": linear(3, lambda y, at: F.binary_cross_entropy_with_logits(y, truths[at], pos_weight=torch.tensor(2.5, dtype=torch.float64))),
    "squared-error": linear(3, lambda y, at: F.mse_loss(y, values[at])),
    "absolute-error": linear(3, lambda y, at: F.l1_loss(y, values[at])),
    "huber": linear(3, lambda y, at: F.huber_loss(y, values[at], delta=0.5)),
    "contrastive": contrastive(),
    "next-token-cross-entropy": language(lambda logits, at: F.cross_entropy(logits(tokens[at][:, :-1]).reshape(-1, 7), tokens[at][:, 1:].reshape(-1))),
    "next-token-cross-entropy, masked": language(chat),
    "masked-token-cross-entropy": language(lambda logits, at: F.cross_entropy(logits(tokens[at]).reshape(-1, 7), hidden[at].reshape(-1))),
    "preference": preference(),
    "cross-entropy, distilled": linear(5, distilled),
    "cross-entropy, distilled alone": linear(5, lambda y, at: apart(y, teacher(features[at]), 1).mean()),
    "cross-entropy, distilled, smoothed and weighted": linear(5, weighed),
    "next-token-cross-entropy, distilled": language(lambda logits, at: apart(logits(tokens[at][:, :-1]), reader(tokens[at][:, :-1]), 2).mean() * 0.5 + F.cross_entropy(logits(tokens[at][:, :-1]).reshape(-1, 7), tokens[at][:, 1:].reshape(-1)) * 0.5),
    "next-token-cross-entropy, distilled and masked": language(taught_chat),
    "masked-token-cross-entropy, distilled": language(taught_hidden),
}, indent=None))
