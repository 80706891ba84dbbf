"""Who work is done for: the names of tenants, and how much each may have waiting. Knows no keys."""

import re
from dataclasses import dataclass

from shared.errors import UsageError

DEFAULT_TENANT = "default"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Quota:
    """The most a tenant may have accepted and not yet ended; None: no limit.

    `audio_s` counts the audio still to be made, in seconds; `jobs` the jobs alive.
    """

    audio_s: float | None = None
    jobs: int | None = None

    @property
    def is_limit(self) -> bool:
        """True when there is anything to check."""
        return self.audio_s is not None or self.jobs is not None


NO_QUOTA = Quota()


@dataclass(frozen=True, slots=True)
class TenantBacklog:
    """What a tenant has accepted and not yet ended: audio to be made, in seconds, and jobs."""

    audio_s: float
    jobs: int


def check_tenant(name: str) -> str:
    """Return a tenant's name if it may be one. Raises UsageError."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            "a tenant's name has 1 to 64 lower-case letters, digits, dots, hyphens and "
            "underscores, and begins with a letter or digit",
            code="bad-tenant",
        )
    return name
