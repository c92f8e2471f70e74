"""Bytes of storage as the pages of tensors write them."""

from __future__ import annotations

from core.units import QuantityText, format_bytes


def bytes_text(count: int) -> str:
    """Bytes of storage, exact up to a mebibyte."""
    if count < 2**20:
        return QuantityText(f"{count:,} B", count, "B")
    return format_bytes(count, system="binary", digits=4)
