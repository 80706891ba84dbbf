"""The engine host's main: build the engine, warm it up, open the socket, run the loop.

The socket appears only when the engine has spoken, so a link that gets through finds it ready.
"""

import argparse
import json
import logging
import queue
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from shared.errors import FatalError, SetupError, UsageError
from shared.leaving import leave_quickly
from shared.lifeline import die_with_parent
from shared.logs import configure_logging
from worker.batching.policy import DEFAULT_LIMITS, Policy, TierLimits
from worker.engines import registry
from worker.host.address import check_path, listen_on
from worker.host.canary import speak_canary
from worker.host.desk import Desk
from worker.host.events import Event, Stop
from worker.host.exchange import Exchange
from worker.host.loop import HostLoop
from worker.host.wear import Wear, WearLimits

log = logging.getLogger(__name__)

EXIT_OK, EXIT_BROKEN, EXIT_USAGE, EXIT_SETUP = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a host until SIGTERM, or until it is worn; returns its exit status.

    0: stopped; 1: the engine broke, start another host; 2: wrong arguments; 3: something is not
    installed or the socket cannot be made.
    """
    options = _parse(arguments)
    die_with_parent(options.parent)
    leave_quickly()
    configure_logging("host")
    try:
        _serve(options)
    except UsageError as error:
        log.error("%s", error)  # noqa: TRY400 - for people: one line, no traceback
        return EXIT_USAGE
    except SetupError as error:
        log.error("%s", error)  # noqa: TRY400
        return EXIT_SETUP
    except FatalError as error:
        log.error("%s", error)  # noqa: TRY400
        return EXIT_BROKEN
    return EXIT_OK


def _serve(options: argparse.Namespace) -> None:
    check_path(options.socket)
    limits = parse_tiers(options.tiers)
    wear_limits = parse_recycle(options.recycle)
    engine = registry.build(options.engine, _object(options.options, "--options"))
    speak_canary(engine)
    inbox: queue.SimpleQueue[Event] = queue.SimpleQueue()  # its put may be called by a handler

    def stop(_signal: int, _frame: FrameType | None) -> None:
        inbox.put(Stop())

    for signal_no in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signal_no, stop)
    doorway = listen_on(options.socket)
    log.info("%s %s is ready at %s", engine.info.name, engine.info.version, options.socket)
    exchange = Exchange(doorway.listener, engine.info, inbox)
    loop = HostLoop(
        engine=engine,
        policy=Policy(
            slots=engine.info.slots,
            limits=limits,
            slotwise=engine.info.streams,
            pads=engine.info.pads,
        ),
        desk=Desk(engine.info, exchange),
        inbox=inbox,
        wear=Wear(wear_limits),
    )
    exchange.start(loop.vitals)
    try:
        loop.run()
    finally:
        doorway.close()
        exchange.close()


def parse_tiers(text: str) -> Mapping[str, TierLimits]:
    """Tier limits from JSON like `{"rush": {"max_batch": 4, "max_wait_s": 0}}`.

    Other keys of a tier are ignored, so that whole TierSettings may be given; tiers and keys left
    out keep their defaults. Raises UsageError.
    """
    limits = dict(DEFAULT_LIMITS)
    for tier, given in _object(text, "--tiers").items():
        if not isinstance(given, dict):
            raise UsageError(f"--tiers: {tier} must be an object", code="bad-tiers")
        default = limits.get(tier, TierLimits())
        try:
            limits[tier] = TierLimits(
                max_batch=int(given.get("max_batch", default.max_batch)),
                max_wait_s=float(given.get("max_wait_s", default.max_wait_s)),
            )
        except (TypeError, ValueError) as error:
            raise UsageError(f"--tiers: {tier}: {error}", code="bad-tiers") from error
    return limits


def parse_recycle(text: str) -> WearLimits:
    """When to make room for a new host, from JSON like `{"max_batches": 10000}`. UsageError."""
    try:
        return WearLimits(**_object(text, "--recycle"))  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise UsageError(f"--recycle: {error}", code="bad-recycle") from error


def _object(text: str, option: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{option} is not JSON: {error}", code="bad-json") from error
    if not isinstance(value, dict):
        raise UsageError(f"{option} must be a JSON object", code="bad-json")
    return value


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m worker.host", description="Run one speech engine behind a unix socket."
    )
    parser.add_argument("--engine", required=True, help="name of an installed engine")
    parser.add_argument("--socket", required=True, type=Path, help="where to listen")
    parser.add_argument("--options", default="{}", metavar="JSON", help="the engine's options")
    parser.add_argument(
        "--tiers", default="{}", metavar="JSON", help="max_batch, max_wait_s by tier"
    )
    parser.add_argument(
        "--recycle", default="{}", metavar="JSON", help="max_batches, max_growth_mb; 0: never"
    )
    parser.add_argument("--parent", type=int, metavar="PID", help="die when this process does")
    return parser.parse_args(arguments)
