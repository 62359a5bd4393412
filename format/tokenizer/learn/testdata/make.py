"""Writes what Hugging Face's tokenizers makes of text.txt, for TestTokenizersAreHuggingFaces.

    pip install tokenizers==0.23.3 && python make.py

pieces.json has, for each vocabulary, all tokens by id, the merges, and the ids of held.txt by the tokenizer that it trained.
"""
import json, os
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

os.chdir(os.path.dirname(os.path.abspath(__file__)))
out = []
for size, least, special in [(256, 2, []), (300, 2, []), (512, 2, ["<|endoftext|>", "<pad>"]), (4000, 2, []), (600, 5, []), (2000, 0, [])]:
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    t.decoder = decoders.ByteLevel()
    t.train(["text.txt"], trainers.BpeTrainer(
        vocab_size=size, min_frequency=least, special_tokens=special, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    of = json.loads(t.to_str())["model"]
    merges = [m if isinstance(m, list) else m.split(" ") for m in of["merges"]]
    tokens = sorted(of["vocab"], key=of["vocab"].get)
    out.append({"vocabulary": size, "frequency": least, "special": special, "tokens": tokens[-12:], "size": len(tokens),
                "merges": len(merges), "last": merges[-8:], "ids": t.encode(open("held.txt", newline="").read()).ids})
with open("pieces.json", "w") as f:
    json.dump(out, f, ensure_ascii=True)
    f.write("\n")
