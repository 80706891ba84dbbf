"""Which engines this installation has, asked before a farm is started. Loads none of them."""

from collections.abc import Iterable

from shared.errors import UsageError


def require_engines(asked: Iterable[str]) -> None:
    """UsageError for the first engine that is not installed; it lists those that are."""
    from worker.engines.registry import engine_names  # noqa: PLC0415 - few commands wait for numpy

    installed = engine_names()
    for name in asked:
        if name not in installed:
            raise UsageError(
                f"there is no engine {name}; installed are: {', '.join(installed) or 'none'}",
                code="unknown-engine",
                choices=list(installed),
            )
