"""Calls a gateway by PyPI's openai: python calls.py URL. What it returns is printed as one JSON object."""

import json
import sys

import openai

client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="any", max_retries=0)
messages = [{"role": "user", "content": "Hi"}]
tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
out = {}

whole = client.chat.completions.create(model="hello", messages=messages, seed=7)
out["whole"] = whole.choices[0].message.content
out["seed"] = whole.tally["seed"]
streamed = client.chat.completions.create(model="hello", messages=messages, stream=True, stream_options={"include_usage": True})
out["streamed"] = "".join(c.choices[0].delta.content or "" for c in streamed if c.choices)
called = client.chat.completions.create(model="caller", messages=messages, tools=[tool])
out["called"] = called.choices[0].message.tool_calls[0].function.arguments
out["completion"] = client.completions.create(model="plain", prompt="Once").choices[0].text
out["vector"] = client.embeddings.create(model="vectors", input="abc").data[0].embedding
out["models"] = [m.id for m in client.models.list()]
out["response"] = client.responses.create(model="hello", input="Hi").output_text
with client.responses.stream(model="hello", input="Hi") as events:
    out["told"] = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    out["status"] = events.get_final_response().status
try:
    client.chat.completions.create(model="none", messages=messages)
except openai.NotFoundError as e:
    out["missing"] = e.code
print(json.dumps(out))
