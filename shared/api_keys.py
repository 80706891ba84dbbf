"""The text of an API key: how one is made, taken apart and digested. Knows no ledger, no HTTP.

A key is `vxf_<id>_<secret>`. The id is public and finds the key's row; the secret is 256 random
bits, so one round of SHA-256 keeps it safe: there is no dictionary to try. Only the digest is kept.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass

from shared.ids import new_id

_SECRET_BYTES = 32
_FORM = re.compile(r"vxf_([0-9A-HJKMNP-TV-Z]{26})_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, repr=False)
class NewKey:
    """A key just made. `text` is shown once and kept nowhere; it stays out of reprs and logs."""

    id: str
    text: str

    @property
    def sha256(self) -> str:
        """What the ledger keeps of it."""
        return digest(self.text)


def new_key() -> NewKey:
    """Make a key that nobody can guess."""
    key_id = new_id()
    return NewKey(key_id, f"vxf_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}")


def key_id_of(text: str) -> str | None:
    """The id that a presented key names; None when it has not the form of a key."""
    found = _FORM.fullmatch(text)
    return found.group(1) if found else None


def digest(text: str) -> str:
    """SHA-256 of a key's text, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
