"""Makes a small random model of each family, and what transformers computes with it.

    python model/lm/testdata/families.py model/lm/testdata

It needs torch, transformers and safetensors. Each family gets a folder as the Hub has them, with expected.safetensors beside it: tokens,
and their logits in float32.
"""

import json
import pathlib
import sys

import torch
import transformers.utils.import_utils
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

transformers.utils.import_utils.is_cuda_stream_capturing = lambda: False  # GPT-2 asks, which crashes where a GPU's libraries are missing

COMMON = dict(vocab_size=48, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=4,
              max_position_embeddings=64, attn_implementation="eager", pad_token_id=None, bos_token_id=0, eos_token_id=1)
LLAMA3 = dict(rope_type="llama3", factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16, rope_theta=10000.0)
LONG = dict(rope_type="longrope", short_factor=[1.0, 1.25, 1.5], long_factor=[1.0, 2.0, 4.0], rope_theta=10000.0, partial_rotary_factor=0.75,
            original_max_position_embeddings=32)
FAMILIES = {
    "llama": dict(model_type="llama", tie_word_embeddings=True, **COMMON),
    "llama3": dict(model_type="llama", rope_parameters=LLAMA3, tie_word_embeddings=False, mlp_bias=True, attention_bias=True, **COMMON),
    "mistral": dict(model_type="mistral", sliding_window=7, **COMMON),
    "qwen2": dict(model_type="qwen2", tie_word_embeddings=True, **COMMON),
    "qwen3": dict(model_type="qwen3", **COMMON),
    "phi3": dict(model_type="phi3", sliding_window=9, **{k: v for k, v in COMMON.items() if k != "head_dim"}),
    "gemma2": dict(model_type="gemma2", sliding_window=6, query_pre_attn_scalar=8, attn_logit_softcapping=5.0, final_logit_softcapping=3.0, **COMMON),
    "gemma3": dict(model_type="gemma3_text", sliding_window=5, query_pre_attn_scalar=8, layer_types=["sliding_attention", "full_attention", "sliding_attention"],
                   **dict(COMMON, num_hidden_layers=3)),
    "gpt2": dict(model_type="gpt2", vocab_size=48, n_embd=16, n_layer=2, n_head=4, n_positions=64, attn_implementation="eager", bos_token_id=0, eos_token_id=1),
    "gemma": dict(model_type="gemma", **COMMON),
    "phi3-long": dict(model_type="phi3", rope_parameters=LONG, original_max_position_embeddings=32,
                      **dict({k: v for k, v in COMMON.items() if k != "head_dim"}, hidden_size=32)),
}


def main(out):
    for seed, (name, settings) in enumerate(FAMILIES.items()):
        torch.manual_seed(seed)
        settings = dict(settings)
        config = AutoConfig.for_model(settings.pop("model_type"), **settings)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        with torch.no_grad():
            for key, p in model.named_parameters():
                p.normal_(0, 0.4)
                if p.dim() == 1 and "norm" in key + "ln_" and key.endswith("weight"):
                    p.mul_(0.5).add_(0 if "gemma" in name else 1)
            tokens = torch.randint(0, 48, (1, 20))
            logits = model(tokens).logits[0].float()
        folder = out / name
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        save_file({"tokens": tokens[0].contiguous(), "logits": logits.contiguous()}, folder / "expected.safetensors")
        print(name, json.dumps(json.loads((folder / "config.json").read_text()).get("rope_parameters")), float(logits.abs().max()))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
