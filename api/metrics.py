"""What Prometheus may know of the API and the ledger's backlog. Labels are ids and words, no text.

Each app has a registry of its own. Backlog figures are read from the ledger at scrape time, so
they are the farm's, whichever API process is asked.
"""

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import Connection

from shared.errors import TransientError
from shared.ledger import jobs, kept, renderings, segments, steps
from shared.ledger.clock import read_clock
from shared.ledger.database import Database
from shared.ledger.kept import Kept
from shared.ledger.renderings import Reused

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SCRAPE_PATIENCE_S = 1.0


_Promises = dict[tuple[str, str, str], Kept]


class Metrics:
    """One app's registry."""

    def __init__(self, database: Database) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "voxfarm_api_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "voxfarm_api_response_seconds",
            "Time until an answer began.",
            ("method", "route"),
            buckets=_BUCKETS_S,
            registry=self._registry,
        )
        self._registry.register(_Backlog(database))

    def answered(self, method: str, route: str, status: int, elapsed_s: float) -> None:
        """Count one request. `route` is the template of its path, so ids make no new series."""
        method = method if method in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(elapsed_s)

    def exposition(self) -> bytes:
        """The text exposition; blocks on the ledger for a second at most."""
        return generate_latest(self._registry)


class _Backlog(Collector):
    """Counts in the ledger, read when scraped. With the ledger away only `up` is reported."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def describe(self) -> list[Metric]:
        """Nothing: registering must not read the ledger."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Read all counts in one transaction."""

        def count(
            conn: Connection,
        ) -> tuple[dict[str, int], dict[tuple[str, str], int], dict[str, int], Reused, _Promises]:
            return (
                jobs.counts_by_state(conn),
                segments.counts_by_tier_and_state(conn),
                steps.open_counts(conn),
                renderings.reused(conn),
                _promises(conn),
            )

        try:
            by_state, by_tier, by_kind, reused, promises = self._database.read(
                count, patience_s=_SCRAPE_PATIENCE_S
            )
        except TransientError:
            yield _up(0)
            return
        yield _up(1)
        yield _gauge("voxfarm_jobs", "Jobs by state.", ("state",), _singles(by_state))
        yield _gauge(
            "voxfarm_segments_open",
            "Segments not settled, by tier and state.",
            ("tier", "state"),
            by_tier.items(),
        )
        yield _gauge("voxfarm_steps_open", "Steps not done, by kind.", ("kind",), _singles(by_kind))
        labels = ("tier", "promise", "window")
        due = [(key, record.jobs) for key, record in promises.items()]
        met = [(key, record.met) for key, record in promises.items()]
        yield _gauge("voxfarm_promises_due", "Promises that fell due.", labels, due)
        yield _gauge("voxfarm_promises_met", "Of these, those that were kept.", labels, met)
        for name, meaning, total in (
            ("segments_planned", "Segments of all jobs on record.", reused.segments_planned),
            ("segments_reused", "Of these, those whose audio was there.", reused.segments),
            ("parts_reused", "Parts whose file was there.", reused.parts),
        ):
            yield CounterMetricFamily(f"voxfarm_{name}", meaning, value=total)


def _promises(conn: Connection) -> _Promises:
    """By tier, promise and window."""
    now = read_clock(conn)
    found: _Promises = {}
    for window, within_s in (("hour", kept.HOUR_S), ("day", kept.DAY_S)):
        for tier, record in kept.read(conn, now, within_s=within_s).items():
            found[tier.value, "completion", window] = record.completion
            found[tier.value, "first_audio", window] = record.first_audio
    return found


def _up(value: float) -> Metric:
    return GaugeMetricFamily("voxfarm_ledger_up", "1: the ledger answers.", value=value)


def _singles(counts: dict[str, int]) -> list[tuple[tuple[str], int]]:
    return [((word,), count) for word, count in counts.items()]


def _gauge(
    name: str,
    meaning: str,
    labels: tuple[str, ...],
    samples: Iterable[tuple[tuple[str, ...], int]],
) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for values, count in samples:
        family.add_metric(values, count)
    return family
