"""How figures are written for people: lengths of time, sizes, rates. Pure."""

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
