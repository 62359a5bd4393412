"""Writes one table in every format, as pandas and NumPy do, which a test compares (pip install numpy pandas pyarrow)."""

import pathlib

import numpy as np
import pandas as pd

HERE = pathlib.Path(__file__).parent
table = pd.DataFrame({
    "whole": [1, 2**53 + 1, -5], "real": [0.1, None, 1e-300], "text": ['é"q', "a/b\n", None], "truth": [True, False, True],
})  # fmt: skip

table.to_csv(HERE / "comma.csv", index=False)
table.to_csv(HERE / "semicolon.csv", index=False, sep=";", quoting=2, encoding="utf-8-sig", lineterminator="\r\n")
table.to_csv(HERE / "tab.tsv", index=False, sep="\t")
table.to_json(HERE / "lines.jsonl", orient="records", lines=True)
table.to_json(HERE / "unescaped.jsonl", orient="records", lines=True, force_ascii=False, double_precision=15)
table.to_parquet(HERE / "table.parquet", index=False)
np.savez_compressed(HERE / "arrays.npz", **{name: table[name].to_numpy() for name in ("real", "truth", "whole")})
