"""Mark keys: one 32-byte secret an epoch, and what is derived from it. Knows no file and no audio.

Marks are made with the newest key and looked for with all. What is derived depends on the secret
alone, not on the epoch's number: a key that comes back under another number finds its marks still.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from typing import Self

from shared.errors import SetupError

SECRET_BYTES = 32
MAX_EPOCHS = 64  # every key makes a search longer and its threshold higher
MAX_EPOCH = 999_999


@dataclass(frozen=True, slots=True)
class MarkKey:
    """One epoch's secret. It is in no repr; `fingerprint` names it where a name is needed."""

    epoch: int
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.epoch <= MAX_EPOCH:
            raise SetupError(f"a watermark key's epoch lies between 1 and {MAX_EPOCH}")
        if len(self.secret) != SECRET_BYTES:
            raise SetupError(
                f"watermark key {self.epoch} has {len(self.secret)} bytes instead of {SECRET_BYTES}"
            )
        if len(set(self.secret)) == 1:
            raise SetupError(f"watermark key {self.epoch} is one byte repeated: no secret at all")

    @property
    def fingerprint(self) -> str:
        """8 hexadecimal digits that tell keys apart and give nothing of them away."""
        return self.derived("fingerprint")[:4].hex()

    def derived(self, label: str, *parts: bytes) -> bytes:
        """32 bytes for one use: HMAC-SHA256 over the label and length-prefixed parts."""
        mac = hmac.new(self.secret, b"voxfarm watermark 1", hashlib.sha256)
        for part in (label.encode(), *parts):
            mac.update(len(part).to_bytes(8, "big") + part)
        return mac.digest()


@dataclass(frozen=True, slots=True)
class Keyring:
    """All keys whose marks are known, by rising epoch. Never empty."""

    keys: tuple[MarkKey, ...]

    def __post_init__(self) -> None:
        epochs = [key.epoch for key in self.keys]
        if not epochs:
            raise SetupError("there is no watermark key")
        if epochs != sorted(set(epochs)):
            raise SetupError("watermark keys must have epochs of their own, in rising order")
        if len({key.secret for key in self.keys}) < len(self.keys):
            raise SetupError("two watermark keys are the same: a rotation needs a new secret")
        if len(epochs) > MAX_EPOCHS:
            raise SetupError(f"more than {MAX_EPOCHS} watermark keys")

    @property
    def newest(self) -> MarkKey:
        """The key to mark with."""
        return self.keys[-1]

    def of_epoch(self, epoch: int) -> MarkKey:
        """The key that a job's settings name. SetupError: it is not here."""
        for key in self.keys:
            if key.epoch == epoch:
                return key
        raise SetupError(
            f"watermark key {epoch} is missing: restore it from the backup of the key file"
        )

    def rotated(self, secret: bytes | None = None) -> Self:
        """The same with one epoch more, of a new secret."""
        made = MarkKey(self.newest.epoch + 1, secret or secrets.token_bytes(SECRET_BYTES))
        return type(self)((*self.keys, made))


def new_keyring() -> Keyring:
    """A first key."""
    return Keyring((MarkKey(1, secrets.token_bytes(SECRET_BYTES)),))
