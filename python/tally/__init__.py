"""Tally for people of PyTorch: have a network train a module, and check that it did.

Call `train` with a module and a dataset, or `batch` to apply a model to many records. `prepare` writes the order of a
training, to be tried first. `Order` posts and follows an order file, and `verify` checks a proof. All of them drive the tally program, which `docs/python.md` tells how to get.
"""

from __future__ import annotations

from .errors import BinaryMissing, DataError, ExportError, TallyError, VerificationError
from .order import Order, verify, write_order
from .result import BatchResult, Result, Verification
from .training import batch, prepare, train

__version__ = "0.1.0"

__all__ = [
    "BatchResult", "BinaryMissing", "DataError", "ExportError", "Order", "Result", "TallyError", "Verification", "VerificationError",
    "batch", "export", "load", "prepare", "train", "verify", "write_order",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Imports what needs PyTorch once it is asked for."""
    if name == "export":
        from .exporter import export

        return export
    if name == "load":
        from .weights import load

        return load
    raise AttributeError(f"module 'tally' has no attribute {name!r}")
