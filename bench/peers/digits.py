"""Trains the zoo's MLP and LeNet on scikit-learn's handwritten digits in PyTorch, for tally bench formats to be compared with.

    digits.py TALLY FOLDER

Writes into FOLDER: digits.npz, the digits and who is held out; a model for each seed; digits.json, how they were trained, and the accuracy of each on
the digits that are held out. The models have Tally's initial weights. Optimizer, batches and steps are those of digits.json, too.
"""

import json
import pathlib
import subprocess
import sys

import numpy
import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper
from torch import nn

SEEDS = [1, 2, 3, 4, 5]
BATCH, EPOCHS, RATE = 32, 15, 1e-3
MODELS = {"mlp": f"inputs=64,width=64,batch={BATCH}", "lenet": f"size=16,batch={BATCH}"}


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(x)))))


def read():
    from sklearn.datasets import load_digits

    digits = load_digits()
    x = (digits.data / 16).astype(numpy.float32)
    image = x.reshape(-1, 8, 8).repeat(2, 1).repeat(2, 2)[:, None]
    part = numpy.zeros(len(x), numpy.int32)
    part[numpy.random.default_rng(0).permutation(len(x))[: len(x) // 5]] = 1
    return {"features": x, "image": image, "digit": digits.target.astype(numpy.int32), "part": part}


def train(model, x, y, steps, seed):
    """As Tally reads records: one permutation behind another, cut into batches."""
    torch.manual_seed(seed)
    order = torch.cat([torch.randperm(len(x)) for _ in range(EPOCHS + 1)])
    optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
    for step in range(steps):
        rows = order[step * BATCH : (step + 1) * BATCH]
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()


def main(tally, folder):
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    data = read()
    numpy.savez(folder / "digits.npz", **data)
    y, held = torch.from_numpy(data["digit"]).long(), torch.from_numpy(data["part"]) == 1
    steps = EPOCHS * int((~held).sum()) // BATCH
    found = {}
    for name, settings in MODELS.items():
        x = torch.from_numpy(data["features" if name == "mlp" else "image"])
        found[name] = []
        for seed in SEEDS:
            file = folder / f"digits-{name}-{seed}.onnx"
            file.unlink(missing_ok=True)
            subprocess.run([tally, "model", "new", name, "--set", settings, "--seed", str(seed), "--out", str(file)], check=True, stdout=subprocess.DEVNULL)
            model = {"mlp": MLP, "lenet": LeNet}[name]()
            weights = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in onnx.load(file).graph.initializer}
            model.load_state_dict({k: weights[k] for k in model.state_dict()})
            train(model, x[~held], y[~held], steps, seed)
            with torch.no_grad():
                right = (model(x[held]).argmax(1) == y[held]).float().mean().item()
            found[name].append(100 * right)
    (folder / "digits.json").write_text(json.dumps({"batch": BATCH, "steps": steps, "rate": RATE, "accuracy": found}, indent=1) + "\n")
    return found


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for name, all in main(sys.argv[1], pathlib.Path(sys.argv[2])).items():
        print(name, " ".join(f"{a:.2f}" for a in all), f"mean {sum(all) / len(all):.2f}")
