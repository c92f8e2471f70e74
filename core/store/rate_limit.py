"""How often a visitor may save: a bucket of tokens that fills up again by itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bucket:
    """Tokens that were left at a time, in seconds of any clock that never goes back."""

    left: float
    at: float


def taken(bucket: Bucket | None, now: float, per_minute: int) -> Bucket | None:
    """The bucket after one more token was taken from it, or None where it holds none; a new one is full."""
    content = bucket or Bucket(per_minute, now)
    left = min(per_minute, content.left + (now - content.at) * per_minute / 60)
    return Bucket(left - 1, now) if left >= 1 else None
