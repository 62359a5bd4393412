"""Exports eight models with random weights from torchvision, transformers and PyTorch.

    models.py DIR [NAME ...]

writes DIR/NAME.onnx, for each NAME or for all. Weights of the larger ones lie beside
it as external data. Nothing is downloaded, and the same versions give the same weights.
"""

import pathlib
import sys

import torch
from torch import nn

EXTERNAL = {"vit", "bert", "gpt2", "swin_t"}  # models whose weights lie in a file of their own


def vision(name):
    import torchvision

    return getattr(torchvision.models, name)(weights=None), torch.randn(1, 3, 224, 224)


class Recurrent(nn.Module):
    """A tagger: two layers of LSTM, and a choice for each step."""

    def __init__(self, width=256, hidden=512, kinds=64):
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, num_layers=2, batch_first=True)
        self.head = nn.Linear(hidden, kinds)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import BertConfig, BertModel

        self.model = BertModel(BertConfig(attn_implementation="sdpa"), add_pooling_layer=False)

    def forward(self, tokens):
        return self.model(input_ids=tokens).last_hidden_state


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        from transformers import GPT2Config, GPT2LMHeadModel

        self.model = GPT2LMHeadModel(GPT2Config(attn_implementation="sdpa", use_cache=False))

    def forward(self, tokens):
        return self.model(input_ids=tokens).logits


def tokens(vocabulary, length=128):
    return torch.randint(vocabulary, (1, length))


MODELS = {
    "mobilenet_v3": lambda: vision("mobilenet_v3_large"),
    "efficientnet_b0": lambda: vision("efficientnet_b0"),
    "convnext_t": lambda: vision("convnext_tiny"),
    "swin_t": lambda: vision("swin_t"),
    "vit": lambda: vision("vit_b_16"),
    "lstm": lambda: (Recurrent(), torch.randn(1, 64, 256)),
    "bert": lambda: (Encoder(), tokens(30522)),
    "gpt2": lambda: (Decoder(), tokens(50257)),
}


def settle(model):
    """Fills what begins as zeros or ones, as training would: a zero head would hide all errors."""
    for name, weight in model.named_parameters():
        if name.endswith("layer_scale"):
            nn.init.uniform_(weight, 0.1, 1)
        elif weight.dim() > 1 and not weight.any():
            nn.init.normal_(weight, std=0.02)
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.8, 1.2)


def export(name, folder):
    torch.manual_seed(1)
    model, example = MODELS[name]()
    settle(model)
    path = folder / f"{name}.onnx"
    torch.onnx.export(
        model.eval(), (example,), path, input_names=["x"], output_names=["y"],
        dynamo=True, external_data=name in EXTERNAL, verbose=False,
    )  # fmt: skip
    print(path, flush=True)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or MODELS:
        export(name, folder)


if __name__ == "__main__":
    main()
