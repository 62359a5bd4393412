"""What can go wrong: every error says what to do."""

from __future__ import annotations


class TallyError(Exception):
    """Something failed. `hint` says what to do about it, where the program knows."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\nhint: {hint}" if hint else message)
        self.message = message
        self.hint = hint


class BinaryMissing(TallyError):
    """There is no tally program on this machine."""


class ExportError(TallyError):
    """A module cannot be trained on Tally as it is; the message names the part of it."""


class DataError(TallyError):
    """A dataset is none that an order can name."""


class VerificationError(TallyError):
    """A bundle does not prove its model, or nobody who is trusted signed it."""
