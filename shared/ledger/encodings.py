"""Files of assembled parts that other jobs of the tenant may reuse, by part key.

Knows nothing of what a part key is made of. A timeline here counts segments from the part's first.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, select

from shared.ledger import tables as t
from shared.ledger.upsert import upsert


@dataclass(frozen=True, slots=True)
class Encoding:
    """A stored file and where each segment's sound lies in it, in samples at `rate_hz`."""

    object_key: str
    size_bytes: int
    sha256: str
    samples: int
    rate_hz: int
    timeline: list[list[int]]


def find(conn: Connection, tenant: str, part_key: str) -> Encoding | None:
    """The newest file of a part; it may be going, so lock its object before pointing to it."""
    e = t.encoding.c
    row = conn.execute(
        select(*(e[name] for name in Encoding.__slots__)).where(
            e.tenant == tenant, e.part_key == part_key
        )
    ).one_or_none()
    return None if row is None else Encoding(**row._asdict())


def record(conn: Connection, tenant: str, part_key: str, made: Encoding) -> None:
    """Note a part's file. The newest counts; its object is known already."""
    values = {name: getattr(made, name) for name in Encoding.__slots__}
    keys = {"tenant": tenant, "part_key": part_key}
    upsert(conn, t.encoding, ("tenant", "part_key"), keys | values)
