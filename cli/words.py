"""How figures are written for people: lengths of time, sizes, rates, columns. Pure."""

from collections.abc import Sequence

TIMES = "\N{MULTIPLICATION SIGN}"


def clock_time(seconds: float) -> str:
    """Write 0:07, 2:31 or 1:02:03; rounded to whole seconds."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def size(count_bytes: int) -> str:
    """Write a size with the decimal unit that keeps it short."""
    amount = float(count_bytes)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:  # noqa: PLR2004
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def times_real_time(audio_s: float, wall_s: float) -> str:
    """Write how many seconds of audio came out of each second of waiting."""
    rate = f"{audio_s / wall_s:.1f}" if wall_s > 0 else "-"
    return f"{rate} {TIMES} real time"


def job_state(state: str, *, paused: bool) -> str:
    """Write a job's state, and that it stands still if it does."""
    return f"{state} (paused)" if paused else state


def columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align rows of equal length in columns. Nothing is cut off: what is read by `grep` is whole.

    Control characters become spaces. Put what may be wide or Chinese into the last column.
    """
    clean = [["".join(c if c.isprintable() else " " for c in cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*clean, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in clean
    ]
