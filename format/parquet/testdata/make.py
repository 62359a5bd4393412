"""Writes files as pyarrow and pandas do, which the tests read (pip install numpy pandas pyarrow)."""

import json
import pathlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent

table = pa.table({
    "i8": pa.array([1, None, -128], pa.int8()), "u16": pa.array([0, 65535, 7], pa.uint16()), "i64": pa.array([-(2**63), 2**63 - 1, None]),
    "u64": pa.array([2**64 - 1, 0, 1], pa.uint64()), "f16": pa.array(np.array([0.5, -2, 65504], np.float16)), "f32": pa.array([0.1, None, 3], pa.float32()),
    "f64": pa.array([0.1, float("nan"), -0.0]), "ok": pa.array([True, None, False]), "text": ["é", None, ""], "none": pa.array([None, None, None], pa.float64()),
    "vector": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32())), "fixed": pa.array([[1, 2, 3]] * 3, pa.list_(pa.int16(), 3)),
    "matrix": [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [10, 11, 12]], [[0, 0, 0], [1, 1, 1]]],
    "point": [{"x": 1, "y": {"z": "a"}}, {"x": None, "y": {"z": "b"}}, None], "day": pa.array([1, 2, None], pa.date32()),
    "label": pa.array(["b", "a", "b"]).dictionary_encode(),
})  # fmt: skip
KINDS = {
    "v1": {}, "v2": {"data_page_version": "2.0", "compression": "zstd"}, "plain": {"use_dictionary": False, "compression": "none"},
    "groups": {"row_group_size": 1, "compression": "gzip"},
    "delta": {"use_dictionary": False, "compression": "snappy", "column_encoding": {
        "i64": "DELTA_BINARY_PACKED", "i8": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY", "f64": "BYTE_STREAM_SPLIT", "label": "DELTA_LENGTH_BYTE_ARRAY",
    }},
}  # fmt: skip
for name, options in KINDS.items():
    pq.write_table(table, HERE / f"{name}.parquet", write_statistics=False, **options)

rng = np.random.default_rng(1)
n = 1000
many = pd.DataFrame({
    "i": rng.integers(-(2**40), 2**40, n), "small": rng.integers(0, 3, n), "x": rng.standard_normal(n).round(3).astype("float32"),
    "text": [f"text {i * i}" for i in range(n)], "label": rng.choice(["a", "b", "c"], n), "ok": rng.random(n) < 0.5,
})  # fmt: skip
many.loc[::7, "label"] = None
for name, options in {"many": {"data_page_size": 1000}, "manydelta": {"engine": "pyarrow", "use_dictionary": False, "compression": "zstd", "column_encoding": {"i": "DELTA_BINARY_PACKED", "small": "DELTA_BINARY_PACKED", "text": "DELTA_BYTE_ARRAY"}}}.items():
    many.to_parquet(HERE / f"{name}.parquet", **options)
many.to_csv(HERE / "many.csv", index=False)

pq.write_table(pa.table({"d": pa.array([1], pa.decimal128(5, 2))}), HERE / "decimal.parquet")
pq.write_table(pa.table({"m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))}), HERE / "map.parquet")
pq.write_table(pa.table({"b": [b"\xff"]}), HERE / "bytes.parquet")
pq.write_table(pa.table({"l": [[1], [2, 3]]}), HERE / "ragged.parquet")
pq.write_table(pa.table({"l": [[1], None]}), HERE / "lacking.parquet")
pq.write_table(pa.table({"l": [["a"]]}), HERE / "texts.parquet")
pq.write_table(pa.table({"x": [1]}), HERE / "brotli.parquet", compression="brotli")
pq.write_table(pa.table({"x": np.zeros(100_000_000, np.int8)}), HERE / "bomb.parquet", compression="zstd", row_group_size=100_000_000, data_page_size=2**30, write_batch_size=100_000_000, max_rows_per_page=100_000_000)

# Chats, and what else holds lists of texts; beside them as lines of JSON without what is null.
text, call = pa.string(), pa.struct([("id", pa.string()), ("function", pa.struct([("name", pa.string()), ("arguments", pa.string())]))])
chats = pa.schema([
    ("messages", pa.list_(pa.struct([("role", text), ("content", text), ("weight", pa.float32()), ("tool_calls", pa.list_(call))]))),
    ("tags", pa.list_(pa.list_(text))), ("meta", pa.struct([("seen", pa.bool_()), ("count", pa.int16()), ("by", pa.list_(text))])), ("text", text),
])
rows = [
    {"messages": [{"role": "user", "content": "Capital of \"Peru\"?\n\t\x01é"}, {"role": "assistant", "content": "Lima.", "weight": 0.5}], "tags": [["a", "b"], [], ["c"]], "meta": {"seen": True, "count": -3, "by": ["x"]}, "text": "one"},
    {"messages": [], "tags": [], "meta": {"by": []}, "text": "two"},
    {"messages": [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}, {"id": "2"}]}, {"role": "tool", "content": "", "tool_calls": []}], "tags": [[]], "meta": {"seen": False}, "text": None},
    {"text": "three"},
    {"messages": [None, {"role": "user", "content": "\u2028</s>"}], "tags": [None, [None, "d"]], "meta": {"count": 7, "by": [None]}, "text": "four"},
]
for name, options in {"chats": {}, "chats2": {"data_page_version": "2.0", "use_dictionary": False, "compression": "none", "row_group_size": 2}}.items():
    pq.write_table(pa.Table.from_pylist(rows, chats), HERE / f"{name}.parquet", write_statistics=False, **options)
(HERE / "chats.jsonl").write_text("".join(json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows))

# A file to train on, as JSONL and as Parquet: both give the same records.
talk = [{"messages": [{"role": "user", "content": f"{i}+{i}?"}, {"role": "assistant", "content": str(2 * i)}], "text": f"{i} is a number"} for i in range(12)]
pq.write_table(pa.Table.from_pylist(talk), HERE / "talk.parquet")
(HERE / "talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in talk))
