"""Options with a range that holds for every farm: refused before one is asked or started."""

import typer

from shared.jobs import LEAST_SPEED, MOST_SPEED, SAMPLE_RATES_HZ


def speed(written: str | float) -> float:
    """A speaking rate, for an option. Raises typer.BadParameter, also for what is no number."""
    try:
        value = float(written)
    except ValueError:
        value = 0.0
    if not LEAST_SPEED <= value <= MOST_SPEED:  # false for NaN as well
        raise typer.BadParameter(
            f"{written!r} is no speed between {LEAST_SPEED:g} and {MOST_SPEED:g}"
        )
    return value


def sample_rate_hz(written: str | int) -> int:
    """A rate that files are delivered at, for an option. Raises typer.BadParameter."""
    for rate_hz in SAMPLE_RATES_HZ:
        if str(written).strip() == str(rate_hz):
            return rate_hz
    choices = ", ".join(map(str, SAMPLE_RATES_HZ))
    raise typer.BadParameter(f"{written!r} Hz is not delivered; choose one of {choices}")
