"""Reading how long something is to be kept, as people write it: 12h, 7d, 3600."""

import re

import typer

from shared.jobs import LEAST_RETENTION_S, MOST_RETENTION_S

_UNIT_S = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def retention_s(written: str) -> int:
    """Whole seconds of `12h`, `7d` or `3600`, for an option. Raises typer.BadParameter."""
    found = re.fullmatch(r"([0-9]{1,9})([smhd]?)", written.strip().lower())
    seconds = int(found[1]) * _UNIT_S[found[2]] if found else 0
    if not LEAST_RETENTION_S <= seconds <= MOST_RETENTION_S:
        raise typer.BadParameter(f"{written!r} is no time between 1h and 31d, like 12h or 7d")
    return seconds
