"""How what was measured of an engine is shown: two tables and a plot of bars. Pure."""

from collections.abc import Iterator, Sequence

from rich.table import Table

from cli.words import TIMES
from worker.tuning.choosing import Choice
from worker.tuning.figures import Figures

_BAR = 40
_BLOCK = "\N{FULL BLOCK}"


def figures_table(engine: str, figures: Sequence[Figures]) -> Table:
    """One row for each length and batch size."""
    table = Table(title=f"engine {engine}", title_justify="left")
    for heading in (
        "chars",
        "batch",
        "batch s",
        "first s",
        f"{TIMES} real time",
        "memory MB",
        "from alone dB",
    ):
        table.add_column(heading, justify="right")
    for each in figures:
        if each.fault:
            table.add_row(_chars(each), str(each.batch), each.fault)
            continue
        difference = "equal" if each.difference_db is None else f"{each.difference_db:.0f}"
        table.add_row(
            _chars(each),
            str(each.batch),
            f"{each.batch_s:.3f}",
            f"{each.first_chunk_s:.3f}",
            f"{each.x_real_time:.1f}",
            f"{each.memory_mb:.0f}",
            difference,
        )
    return table


def bars(figures: Sequence[Figures]) -> Iterator[str]:
    """Speed by batch size, a bar each, lengths one below the other."""
    highest = max((each.x_real_time for each in figures), default=0.0)
    for each in figures:
        if highest and not each.fault:
            bar = _BLOCK * max(1, round(_BAR * each.x_real_time / highest))
            batch = f"{_chars(each):>5} chars  batch {each.batch}"
            yield f"{batch}  {bar:<{_BAR}} {each.x_real_time:.1f}"


def tiers_table(choices: Sequence[Choice]) -> Table:
    """What was chosen, and why not more."""
    table = Table(title="tiers", title_justify="left")
    for heading in ("tier", "max_batch", "wait s", "allowed s"):
        table.add_column(heading, justify="left" if heading == "tier" else "right")
    table.add_column("why not more")
    for choice in choices:
        table.add_row(
            choice.tier.value,
            str(choice.max_batch),
            f"{choice.wait_s:.2f}",
            f"{choice.allowed_s:.2f}",
            choice.why,
        )
    return table


def shortfalls(choices: Sequence[Choice]) -> Iterator[str]:
    """A line for each tier whose target no batches keep: by how much, and what would help."""
    for choice in choices:
        if not choice.keeps_target:
            yield (
                f"{choice.tier}: no batches keep its target: {choice.wait_s:.2f} s of "
                f"{choice.allowed_s:.2f} s allowed; what helps: {choice.helps}"
            )


def _chars(figures: Figures) -> str:
    return "mixed" if figures.mixed else str(figures.chars)
