"""Sortable identifiers (ULID): 48 bits of milliseconds, 80 random bits, 26 Crockford digits."""

import secrets
import time

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_id() -> str:
    """A fresh ULID; later ones sort after earlier ones (to the millisecond)."""
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    return "".join(_ALPHABET[(value >> shift) & 31] for shift in range(125, -1, -5))
