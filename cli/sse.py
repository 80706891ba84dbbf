"""Server-sent events: lines of a response in, events out. Pure; knows no HTTP and no jobs.

Source: WHATWG HTML, "Server-sent events", the stream's interpretation. `id` and `retry` fields
are read over: the farm's events are whole job views, so nothing is lost by starting again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """One dispatched event: its type (`message` when unnamed) and its data."""

    kind: str
    data: str


def parse_events(lines: Iterable[str]) -> Iterator[Event]:
    """Yield each complete event; an event cut off by the end of the stream is dropped."""
    kind, data = "", list[str]()
    for line in lines:
        if line == "":
            if data:
                yield Event(kind or "message", "\n".join(data))
            kind, data = "", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
