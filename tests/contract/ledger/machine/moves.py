"""Writes down every move of a row, by triggers in the database, and holds it against the documents.

Triggers see moves that no reader would: those inside one transaction, and those of two actors at
once. Knows the documented transitions, and nothing of the code that moves rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, text

from shared.jobs import ENDED, JOB_TRANSITIONS, JobState
from shared.ledger.database import Database
from shared.segments import SEGMENT_TRANSITIONS, SegmentState
from shared.steps import STEP_TRANSITIONS, StepState
from shared.webhooks import DELIVERY_TRANSITIONS, DeliveryState

_LEGAL: Mapping[str, Mapping[StrEnum, frozenset[StrEnum]]] = {
    "job": JOB_TRANSITIONS,
    "segment": SEGMENT_TRANSITIONS,
    "step": STEP_TRANSITIONS,
    "delivery": DELIVERY_TRANSITIONS,
}
_STATES: Mapping[str, type[StrEnum]] = {
    "job": JobState,
    "segment": SegmentState,
    "step": StepState,
    "delivery": DeliveryState,
}
_ID = {"segment": """NEW.job_id || '.' || NEW."index" """}
_FENCED = ("token", "dispatch_no")
_WATCHED: Mapping[str, tuple[str, ...]] = {
    "job": ("state",),
    "segment": ("state", *_FENCED, "object_key", "sha256"),
    "step": ("state", *_FENCED),
    "delivery": ("state", *_FENCED),
}


_FIELDS = (
    "what, id, was, now, token_was, token_now, number_was, number_now, audio_was, audio_now,"
    " lease_left_s"
)
_NOW = {
    True: "((julianday('now') - 2440587.5) * 86400.0)",
    False: "extract(epoch from clock_timestamp())::float8",
}
_SLACK_S = 1.0


@dataclass(frozen=True)
class Move:
    """One update of a row: its state, token, dispatch number and audio, before and after.

    `lease_left_s`: how long the lease of before would have gone on.
    """

    what: str
    id: str
    was: str
    now: str
    token_was: int
    token_now: int
    number_was: int
    number_now: int
    audio_was: str
    audio_now: str
    lease_left_s: float


def plant(database: Database) -> None:
    """Add the table of moves and its triggers to a migrated ledger, once."""
    serial = "INTEGER PRIMARY KEY AUTOINCREMENT" if database.dialect == "sqlite" else "BIGSERIAL"
    columns = (
        "what varchar(16), id varchar(64), was varchar(16), now varchar(16), token_was integer,"
        " token_now integer, number_was integer, number_now integer, audio_was text, audio_now text"
        ", lease_left_s double precision"
    )

    def create(conn: Connection) -> None:
        conn.exec_driver_sql(f"CREATE TABLE moves (seq {serial}, {columns})")
        for table, watched in _WATCHED.items():
            for statement in _trigger(table, watched, sqlite=database.dialect == "sqlite"):
                conn.exec_driver_sql(statement)

    database.transact(create)


def _trigger(table: str, watched: Iterable[str], *, sqlite: bool) -> Iterator[str]:
    fences = [
        f"{row}.{name}" if name in watched else "0" for name in _FENCED for row in ("OLD", "NEW")
    ]
    audio = [
        f"coalesce({row}.object_key || ' ' || {row}.sha256, '')" if table == "segment" else "''"
        for row in ("OLD", "NEW")
    ]
    left = "0" if table == "job" else f"coalesce(OLD.lease_until - {_NOW[sqlite]}, 0)"
    values = ", ".join(
        [f"'{table}'", _ID.get(table, "NEW.id"), "OLD.state", "NEW.state", *fences, *audio, left]
    )
    insert = f"INSERT INTO moves ({_FIELDS}) VALUES ({values});"  # noqa: S608 - constants
    differs = "IS NOT" if sqlite else "IS DISTINCT FROM"
    moved = " OR ".join(f"OLD.{name} {differs} NEW.{name}" for name in watched)
    if sqlite:
        event = f"moved_{table} AFTER UPDATE ON {table}"
        yield f"CREATE TRIGGER {event} WHEN {moved} BEGIN {insert} END"
        return
    yield (
        f"CREATE FUNCTION moved_{table}() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN {insert} RETURN NULL; END $$"
    )
    yield (
        f"CREATE TRIGGER moved_{table} AFTER UPDATE ON {table} FOR EACH ROW WHEN ({moved})"
        f" EXECUTE FUNCTION moved_{table}()"
    )


def read(conn: Connection) -> list[Move]:
    """All moves so far, each row's in their order."""
    query = text(f"SELECT {_FIELDS} FROM moves ORDER BY seq")  # noqa: S608 - constants
    return [Move(*row) for row in conn.execute(query)]


def faults(moves: Iterable[Move]) -> Iterator[str]:
    """What is wrong with these moves, in words."""
    before: dict[tuple[str, str], Move] = {}
    for move in moves:
        last = before.get((move.what, move.id))
        if move.was != move.now:
            if last is not None and last.now != move.was:
                yield f"{move} does not begin where {last} ended"
            if not _is_legal(move.what, move.was, move.now) and not _is_retry(last, move):
                yield f"{move} is no documented move"
            before[move.what, move.id] = move
        if move.token_now < move.token_was or move.number_now < move.number_was:
            yield f"{move} makes a token or a dispatch number fall"
        leased = move.was == move.now == SegmentState.LEASED
        if leased and move.token_now != move.token_was and move.lease_left_s > _SLACK_S:
            yield f"{move} takes a lease from who still holds it"
        if move.was == SegmentState.DONE and move.audio_now not in {move.audio_was, ""}:
            yield f"{move} changes audio that was committed"


def _is_legal(what: str, was: str, now: str) -> bool:
    states = _STATES[what]
    return states(now) in _LEGAL[what][states(was)]


def _is_retry(last: Move | None, move: Move) -> bool:
    """Two updates of one transaction: a retry takes a job up, then puts it where it belongs."""
    return (
        last is not None
        and move.what == "job"
        and JobState(last.was) in ENDED
        and last.now == JobState.RENDERING
        and _is_legal("job", last.was, move.now)
    )
