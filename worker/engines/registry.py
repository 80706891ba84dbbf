"""Finds engines by name among the installed entry points; imports only the one it builds.

Knows no engine: another package adds its own under the group `voxfarm.engines`. An entry point is a
callable that takes the engine's options as keyword arguments and returns an Engine.
"""

import inspect
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint, entry_points

from shared.errors import NotFoundError, SetupError, UsageError
from worker.engines.base import Engine

GROUP = "voxfarm.engines"
_EXTRA_OF_MODULE = {
    "torch": "gpu",
    **dict.fromkeys(("cn2an", "jieba", "misaki", "ordered_set", "pypinyin"), "kokoro"),
}  # whatever else is missing comes with the extra `worker`


def engine_names() -> tuple[str, ...]:
    """Names of all installed engines, sorted; nothing is imported."""
    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def build(name: str, options: Mapping[str, object]) -> Engine:
    """Import, build and return the engine `name`; loading may take seconds.

    Raises NotFoundError for an unknown name, UsageError for options the engine does not take and
    SetupError, with the command that mends it, when something the engine needs is not installed.
    """
    factory = load(_find(name))
    try:
        bound = inspect.signature(factory).bind(**options)
    except TypeError as error:
        known = ", ".join(inspect.signature(factory).parameters) or "none"
        raise UsageError(
            f"engine {name}: {error}; its options: {known}", code="bad-engine-options"
        ) from error
    return factory(*bound.args, **bound.kwargs)


def _find(name: str) -> EntryPoint:
    for point in entry_points(group=GROUP):
        if point.name == name:
            return point
    names = engine_names()
    raise NotFoundError(
        f"no engine named {name!r}; installed: {', '.join(names) or 'none'}",
        code="unknown-engine",
        choices=list(names),
    )


def load(point: EntryPoint) -> Callable[..., Engine]:
    """Import an engine's factory; SetupError when something it needs is not installed."""
    try:
        factory: Callable[..., Engine] = point.load()
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == point.module.partition(".")[0]:
            mend = "pip install --force-reinstall voxfarm"
            raise SetupError(
                f"engine {point.name}: its module {point.module} is not there; reinstall the "
                f"package that provides it: {mend}",
                mend=mend,
            ) from error
        mend = f"pip install 'voxfarm[{_EXTRA_OF_MODULE.get(missing, 'worker')}]'"
        raise SetupError(
            f"engine {point.name} needs the Python package {missing!r}, which is not installed: "
            f"{mend}",
            mend=mend,
        ) from error
    except ImportError as error:
        mend = "pip install --force-reinstall 'voxfarm[worker]'"
        raise SetupError(
            f"engine {point.name} cannot be imported ({error}): reinstall what it needs with "
            f"{mend}",
            mend=mend,
        ) from error
    return factory
