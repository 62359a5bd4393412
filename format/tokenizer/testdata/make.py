"""Trains small tokenizers of many families with PyPI's tokenizers, and asks it for their answers.

    python make.py           writes NAME.json for each family, and answers.json
    python make.py answer    reads ["NAME", "text"] or ["NAME", ids] from each line, and writes what answers.json has
    python make.py time NAME FILE   measures how fast a file is encoded
"""

import base64
import json
import os
import sys
import time
import zlib

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = os.path.dirname(os.path.abspath(__file__))

CORPUS = """
The quick brown fox jumps over the lazy dog. It's a fine day, isn't it? We'll see what they've done; I'm sure she'd agree.
People write numbers such as 1, 22, 333, 4444 and 1,234,567.89, dates such as 2024-05-17, and prices: $3.50 or €12.
In the beginning was the word, and the word was with the people. The tokens of a word depend on the word alone.
A network for computation: orders, offers, leases, rounds and units. Providers compute, validators check, everybody is paid.
def encode(self, text: str) -> list[int]:
    for i in range(len(text)):
        if text[i] == "\\n":
            return [self.ids.get(c, 0) for c in text]
    while True:
        x = {"a": 1, "b": [2, 3]}; y += x["a"] * 2  # comment
\tfunc main() { fmt.Println("hello, world") }
Größe, Straße, naïve café, déjà vu, señor, façade, über, Ångström, Øresund, œuvre, Zürich, smörgåsbord.
Привет, мир! Это небольшой текст на русском языке. Как дела? Хорошо, спасибо.
Γειά σου Κόσμε. Η γλώσσα είναι ελληνική. שלום עולם. مرحبا بالعالم، كيف حالك؟
こんにちは世界。日本語の文章です。カタカナとひらがな。你好，世界！这是一个中文句子。今天天气很好。 안녕하세요 세계. 한국어 문장입니다.
नमस्ते दुनिया। यह हिन्दी है। สวัสดีชาวโลก Xin chào thế giới. Merhaba dünya, İstanbul, ılık.
Emoji: 🙂 👍 🎉 👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 ❤️ and more 🙂🙂. Signs: © ® ™ ± × ÷ ≤ ≥ ∑ √ ∞ → ← ½ ¼ ² ³.
there their the then that this those these when where what which while with would words work works worked working worker
unaffable unhappy undo redo player playing played plays nation national nationality international
"""
CORPUS = [line for line in CORPUS.split("\n") if line] * 3

TEXTS = [
    "", " ", "a", "Hello world", " hello  world ", "It's they'll I'M WE'VE x'D 'tis ''s 'ſ", "The quick brown fox jumps over the lazy dog.",
    "1 12 123 1234 12345 1,234,567.89 ٣٤٥ ½ ² Ⅷ 一二三", "a\nb\r\nc\r\n\r\nd\n\n\ne", "  leading\n   indented\n\ttabs\t\ttwo  \n  \n", "\n", "\r\n", "\t", "   ", "\n \n",
    "def f(x):\n    if x == 1:\n        return [x**2 for x in range(10)]  # done\n", "https://example.com/a_b?c=d&e=%20#frag user@example.org",
    "Größe Straße naïve café", "cafe\u0301 e\u0301\u0323 a\u0308\u0304 \u1e9b\u0323 \u0301start", "Привет, мир! ПРИВЕТ", "Γειά σου Κόσμε ΣΊΣΥΦΟΣ", "שלום עולם مرحبا بالعالم",
    "こんにちは世界。日本語です", "你好，世界！这是中文 mixed 文字", "안녕하세요 \u1112\u1161\u11ab\u1100\u1173\u11af", "नमस्ते दुनिया क्षि", "สวัสดีชาวโลก", "İstanbul ILIK ıi Ǆ ǅ ß ẞ ﬁ ﬃ",
    "🙂👍🎉", "👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪🇫🇷 ❤️ 👩🏽‍💻", "a\u200db\u200cc\u200bd\ufeffe", "\u00a0nbsp\u3000wide\u2028line\u2029para\u0085nel\u000bvt\u000cff\u1680ogham", "\x00\x01\x07\x1b[0m\x7f",
    "\ufffd\ufffe\uffff\U0010ffff\ue000", "①②③ ㎏ ㋿ ｆｕｌｌｗｉｄｔｈ １２３ ﾊﾝｶｸ", "x²+y³=z½ ≤≥ ∑∞ →", "...!!!???---___***~~~", "\"quoted\" 'single' `tick` “curly” ‘x’ «g» 「日」", "a,b;c:d.e!f?g(h)i[j]k{l}m",
    "word<s>word</s> <unk>x<pad>", "[CLS] [SEP] [MASK] [PAD] [UNK] [mask]", "<|endoftext|><|im_start|>user\nhi<|im_end|>", "  <mask>  <mask>x <mask>", "Alpha alphabet alpha beta xalpha alpha-1 ALPHA", "<0x41> ▁ ▁a Ġ Ċ ##x </w>",
    "unaffable unhappy playing nationality internationalization", "x" * 120, "ab" * 60, "日" * 40, " " * 70 + "x", "\u0e01\u0e33 \U00011938 \U00011935\U00011930 \u1c89\ua7cb \U0001e900", "supercalifragilistic\u0301expialidocious" * 3,
    "Mixed한글and漢字ANDкириллица123abc", "tab\there  two\u2003em space", "-1 +2 3-4 5.6e-7 0xFF 1_000", "A.B.C. U.S.A. e.g. i.e.", "ªbc ª\u0301x ª\u0897x ª\u1ae0\u0301x \u0600ª e\u0301 Ⅷ\u0301 A\U00011f5a ﬁ\u200b\u00ad ｶﾞ a\r\nb \u212b", "C'est l'été, n'est-ce pas?", "don't DON'T Don’t", "\u0627\u0644\u0633\u0644\u0627\u0645 \u0661\u0662\u0663", "q\u0307\u0323 \u212b \u2126 \ufb01 \u3392",
]

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
LLAMA3 = r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"""
QWEN2 = LLAMA3.replace("{1,3}", "")
O200K = "|".join([
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
    r"""\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
])

BYTES = pre_tokenizers.ByteLevel.alphabet()
FALLBACK = [f"<0x{b:02X}>" for b in range(256)]
Split = pre_tokenizers.Split
ByteLevel = pre_tokenizers.ByteLevel


def bpe(tok, size=500, alphabet=BYTES, special=(), **more):
    tok.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, special_tokens=list(special), show_progress=False, **more))
    return tok


def byte_level(pre, normalizer=None, special=("<|endoftext|>",), **model):
    tok = Tokenizer(models.BPE())
    if normalizer:
        tok.normalizer = normalizer
    tok.pre_tokenizer, tok.decoder = pre, decoders.ByteLevel()
    bpe(tok, special=special)
    return remodel(tok, **model)


def remodel(tok, **changes):
    """Changes settings of a model: the trainer sets some of them itself."""
    j = json.loads(tok.to_str())
    j["model"].update(changes)
    return Tokenizer.from_str(json.dumps(j))


def gpt2():
    tok = byte_level(ByteLevel(add_prefix_space=False))
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    return tok


def llama3():
    pre = pre_tokenizers.Sequence([Split(Regex(LLAMA3), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)])
    tok = byte_level(pre, special=("<|begin_of_text|>", "<|end_of_text|>"), ignore_merges=True)
    tok.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A <|begin_of_text|> $B", special_tokens=[("<|begin_of_text|>", 0)]),
    ])
    return tok


def qwen2():
    pre = pre_tokenizers.Sequence([Split(Regex(QWEN2), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)])
    tok = byte_level(pre, normalizers.NFC(), special=())
    tok.add_special_tokens([AddedToken(t, special=True) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    return tok


def o200k():
    return byte_level(pre_tokenizers.Sequence([Split(Regex(O200K), "removed", invert=True), ByteLevel(add_prefix_space=False, use_regex=False)]))


def smollm():
    return byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), ByteLevel(add_prefix_space=False)]))


def deepseek():
    return byte_level(pre_tokenizers.Sequence([
        Split(Regex(r"[\r\n]"), "isolated"), Split(Regex(r"\s?\p{L}+"), "isolated"), Split(Regex(r"\s?\p{P}+"), "isolated"),
        Split(Regex(r"\s+$"), "isolated"), Split(Regex("[一-龥ࠀ-一가-퟿]+"), "isolated"), pre_tokenizers.Digits(True), ByteLevel(False, use_regex=False),
    ]))


def roberta():
    tok = byte_level(ByteLevel(add_prefix_space=True), special=("<s>", "<pad>", "</s>", "<unk>"))
    tok.add_special_tokens([AddedToken("<mask>", lstrip=True, special=True)])
    tok.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return remodel(tok, unk_token="<unk>", continuing_subword_prefix="", end_of_word_suffix="")


def llama2(legacy):
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if legacy:
        tok.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    bpe(tok, 800, [], ("<unk>", "<s>", "</s>", *FALLBACK), limit_alphabet=120)
    if legacy:
        tok.pre_tokenizer = None
    else:
        tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    j = json.loads(tok.to_str())
    j["added_tokens"] = [t for t in j["added_tokens"] if not t["content"].startswith("<0x")]
    j["model"]["merges"] = [" ".join(m) for m in j["model"]["merges"]]
    tok = Tokenizer.from_str(json.dumps(j))
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return tok


def gemma():
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    tok.normalizer = normalizers.Replace(" ", "▁")
    tok.pre_tokenizer = Split(" ", "merged_with_previous")
    bpe(tok, 500, [], ("<unk>", "<bos>"), limit_alphabet=80)
    tok.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    return tok


def clip():
    tok = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    tok.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True), ByteLevel(add_prefix_space=False)])
    bpe(tok, 500, BYTES, ("<|startoftext|>", "<|endoftext|>"), end_of_word_suffix="</w>")
    tok.decoder = decoders.BPEDecoder()
    return tok


def bert(cased):
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tok.normalizer = normalizers.BertNormalizer(lowercase=not cased)
    tok.pre_tokenizer, tok.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tok.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=700, special_tokens=special, show_progress=False))
    tok.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    if cased:
        tok.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tok


def unigram(fallback):
    tok = Tokenizer(models.Unigram())
    tok.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip(left=False, right=True)])
    pre = pre_tokenizers.Metaspace()
    tok.pre_tokenizer = pre if fallback else pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre])
    tok.decoder = decoders.Metaspace()
    special = ["<pad>", "</s>", "<unk>"] + (FALLBACK if fallback else [])
    tok.train_from_iterator(CORPUS, trainers.UnigramTrainer(vocab_size=600 if fallback else 400, special_tokens=special, unk_token="<unk>", show_progress=False))
    j = json.loads(tok.to_str())
    j["added_tokens"] = [t for t in j["added_tokens"] if not t["content"].startswith("<0x")]
    j["model"]["byte_fallback"] = fallback
    # without the alphabet's rare characters, so that something is unknown
    keep = [v for i, v in enumerate(j["model"]["vocab"]) if len(v[0]) > 1 or ord(v[0]) < 0x250 or i % 3]
    j["model"]["vocab"] = keep
    tok = Tokenizer.from_str(json.dumps(j))
    if fallback:
        tok.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])
    tok.post_processor = processors.TemplateProcessing(single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)])
    return tok


# What sentencepiece compiles of ª→a, º→o, ﬁ→fi, ①→1, e+U+0301→é, A→a, B→b, ½→1⁄2, ｶ→カ, Ⅷ→VIII, U+212B→Å, of a soft hyphen
# to nothing, and of tab, line ends, wide, hard and zero-width spaces to spaces.
CHARSMAP = zlib.decompress(base64.b64decode(
    "eNod03dsTWEYx/HfOfijpEkjEpFYIaF2bilFrSpyxR61V1EtqT1q31u9Vo1WjdrX7LitrSi1rp3ae9NLVFLU3uN7nOST53mf58178p73PSopqark5yeVLiUZkiMA/hWkssT8EFNO6hXJ"
    "c6nxOMojz1+i7Ei0Se7OkocxbUdaJakM0c24BNERasoRK5Ujz5wuOXlPDrL7SVWoVbYWTDKVVWSqOnk1JMSZcoWbqkleA7UQiDqojXqoiwaoj7xoU8kBphqSByEYjdAEjdEUIWiOZmiB"
    "ULRCS7RBa7RFGNohHB3QHnZrTrChMJuhjuRsV53QFV3QHd3QEz3QG73QBxFgq+qLAeiPQRiIIRiMYRiK4YjESIzAKEQhBtEYg9GIteakmhpHHIsJGI9JmIgpmIxpmAo+u+IwEzMwG7Mw"
    "F3PgtM4A8xAPl3UGWID5WISFSMRiLMUSLMcyJCMJKViBVViJNViNtUjFeqzDRmzAZmzCFrixDVuxA9uRhp3IQDo8yEQ2srAbu7AXe7Af+3AQB3AIOTiCwziKXOu+4BhO4DhO4SS8OI2z"
    "OIPzOIeLuGD1Cg1dIl5GPq7iCq7jGm7iBm7jFu7iDu7jHh7iAR7jEZ7iCZ7jGXwowEu8wCu8Szf0mlho9QIN+YoNvSEvsnp4i/coxkd8wGd8wld8wXd8w0/8wG/8wl/80f//3yZbgTMh"
    "SBF2u537GKmoGK6X1yVvhnzxHv0DHxqkUw=="
))


def albert():
    tok = unigram(False)
    tok.normalizer = normalizers.Sequence([normalizers.Precompiled(CHARSMAP), normalizers.Replace(Regex(" {2,}"), " ")])
    return tok


def falcon():
    return byte_level(pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), ByteLevel(add_prefix_space=False), pre_tokenizers.Digits(False), Split(Regex("[0-9][0-9][0-9]"), "isolated")]))


def odd():
    """Added tokens of all kinds, and parts that the others lack."""
    tok = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    tok.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase()])
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Punctuation("merged_with_next"), pre_tokenizers.Digits(), Split("a", "contiguous"), Split(Regex("[xyz]"), "merged_with_previous")])
    bpe(tok, 400, [], ("<unk>", "<s>"), continuing_subword_prefix="##", limit_alphabet=60)
    tok.decoder = decoders.WordPiece(cleanup=False)
    tok.add_tokens([
        AddedToken("alpha", single_word=True, normalized=True), AddedToken("<mask>", lstrip=True, rstrip=True, normalized=False),
        AddedToken("Straße", normalized=True), AddedToken("<mas", normalized=False), AddedToken("  ", normalized=False), AddedToken("日本", rstrip=True)])
    return tok


FAMILIES = {
    "gpt2": gpt2, "llama3": llama3, "qwen2": qwen2, "o200k": o200k, "smollm": smollm, "deepseek": deepseek, "roberta": roberta,
    "llama2": lambda: llama2(True), "mistral": lambda: llama2(False), "gemma": gemma, "clip": clip, "bert-cased": lambda: bert(True),
    "bert-uncased": lambda: bert(False), "t5": lambda: unigram(True), "xlnet": lambda: unigram(False), "odd": odd,
    "albert": albert, "falcon": falcon,
}


def answer(tok, text):
    if not isinstance(text, str):
        return {"text": tok.decode(text, skip_special_tokens=False), "skipped": tok.decode(text, skip_special_tokens=True)}
    ids = tok.encode(text, add_special_tokens=False).ids
    special = tok.encode(text, add_special_tokens=True).ids
    return {"ids": ids, "special": special, "text": tok.decode(special, skip_special_tokens=False), "skipped": tok.decode(special, skip_special_tokens=True)}


def main():
    if sys.argv[1:] == ["answer"]:
        toks = {n: Tokenizer.from_file(os.path.join(HERE, n + ".json")) for n in FAMILIES}
        for line in sys.stdin:
            name, text = json.loads(line)
            print(json.dumps(answer(toks[name], text)))
        return
    if sys.argv[1:2] == ["time"]:
        text = open(sys.argv[3], encoding="utf-8").read()
        tok = Tokenizer.from_file(os.path.join(HERE, sys.argv[2] + ".json"))
        best = 1e9
        for _ in range(5):
            start = time.perf_counter()
            tok.encode(text, add_special_tokens=False)
            best = min(best, time.perf_counter() - start)
        print(f"{sys.argv[2]}: {len(text.encode()) / best / 1e6:.2f} MB/s")
        return
    answers = []
    for name, make in FAMILIES.items():
        tok = make()
        with open(os.path.join(HERE, name + ".json"), "w", encoding="utf-8") as f:
            f.write(json.dumps(json.loads(tok.to_str()), ensure_ascii=False, separators=(",", ":")))
        tok = Tokenizer.from_file(os.path.join(HERE, name + ".json"))
        answers.append({"name": name, "answers": [dict(answer(tok, t)) for t in TEXTS]})
    with open(os.path.join(HERE, "answers.json"), "w", encoding="utf-8") as f:
        f.write('{"texts":' + json.dumps(TEXTS, separators=(",", ":")) + ',"families":[\n')
        f.write(",\n".join(json.dumps(a, ensure_ascii=False, separators=(",", ":")) for a in answers) + "\n]}\n")


main()
