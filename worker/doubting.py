"""A store seen with doubt: what it does not give, while it does give other things, counts as gone.

A store on whose disk an object has rotted does not say that it is gone: it says that it failed, as
one does that is away for a moment. So this is for who has been put off for a while.
"""

from dataclasses import dataclass

from shared import object_keys
from shared.errors import NotFoundError, StoreError
from shared.storage import ObjectStore

_WRITTEN = b"probe"


@dataclass(frozen=True, slots=True)
class DoubtedStore:
    """Reads from a store that seems to be well, and may have lost some of what it holds."""

    store: ObjectStore

    def get(self, key: str, offset_bytes: int = 0, size_bytes: int | None = None) -> bytes:
        """As ObjectStore.get; NotFoundError too where the store fails at this object alone."""
        try:
            return self.store.get(key, offset_bytes, size_bytes)
        except StoreError as error:
            self._ask_for_a_sign(error)
            raise NotFoundError(f"the store cannot read {key}", code="object-not-found") from error

    def _ask_for_a_sign(self, failed: StoreError) -> None:
        """Raises what failed when the store does not take and give a small object either."""
        try:
            self.store.put(object_keys.PROBE, _WRITTEN, content_type="text/plain")
            if self.store.get(object_keys.PROBE) == _WRITTEN:
                return
        except (StoreError, NotFoundError) as error:
            raise failed from error
        raise failed
