"""Makes small random LoRA adapters of the models beside it, and what PEFT computes with them.

    python model/lm/testdata/adapters.py model/lm/testdata

It needs torch, transformers, peft and safetensors. Each adapter gets a folder as PEFT writes it, with expected.safetensors beside it: tokens, and their
logits in float32.
"""

import json
import pathlib
import sys

import torch
import transformers.utils.import_utils
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

transformers.utils.import_utils.is_cuda_stream_capturing = lambda: False  # GPT-2 asks, which crashes where a GPU's libraries are missing

ADAPTERS = {
    "llama-some": ("llama", torch.float32, dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "mlp.down_proj"])),
    "llama-other": ("llama", torch.float32, dict(r=4, lora_alpha=2, target_modules=["q_proj", "v_proj", "mlp.down_proj"])),
    "llama-all": ("llama", torch.bfloat16, dict(r=3, lora_alpha=5, use_rslora=True, target_modules="all-linear")),
    "gpt2": ("gpt2", torch.float32, dict(r=2, lora_alpha=3, fan_in_fan_out=True, target_modules=["c_attn", "mlp.c_proj"])),
    "phi3": ("phi3", torch.float32, dict(r=5, lora_alpha=16, layers_to_transform=[1], target_modules=["qkv_proj", "gate_up_proj"])),
}


def main(out):
    for seed, (name, (base, typ, settings)) in enumerate(ADAPTERS.items()):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_pretrained(out / base, dtype=torch.float32, attn_implementation="eager")
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings)).eval()
        with torch.no_grad():
            for key, p in model.named_parameters():
                if "lora_" in key:
                    p.copy_(torch.empty_like(p).normal_(0, 0.3).to(typ).float())
            tokens = torch.randint(0, 48, (1, 20))
            logits = model(tokens).logits[0].float()
            without = model.get_base_model()
            with model.disable_adapter():
                moved = (logits - without(tokens).logits[0]).abs().max()
        folder = out / "adapters" / name
        model.peft_config["default"].base_model_name_or_path = base
        model.save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)
        weights = load_file(folder / "adapter_model.safetensors")
        save_file({k: v.to(typ) for k, v in weights.items()}, folder / "adapter_model.safetensors")
        save_file({"tokens": tokens[0].contiguous(), "logits": logits.contiguous()}, folder / "expected.safetensors")
        print(name, len(weights), "weights, which move logits by", float(moved), json.loads((folder / "adapter_config.json").read_text())["target_modules"])


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
