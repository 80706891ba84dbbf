"""What is left in the store that no row refers to, and what rows refer to that is not there.

The farm removes such things itself, when their job is over; nothing of it may remain in the end.
"""

import time
from collections import Counter
from dataclasses import dataclass

from minio import Minio
from minio.error import S3Error
from sqlalchemy import Connection, select

from shared import object_keys
from shared.ledger import tables as t
from shared.ledger.database import Database
from tests.chaos.storm.ground import Ground

_LOOK_S = 1.0
_NAMED = 5  # of each kind, in findings


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Keys and words. `miscounted`: objects counted otherwise than the rows that point to them."""

    unknown: tuple[str, ...]
    uploads: tuple[str, ...]
    unneeded: tuple[str, ...]
    missing: tuple[str, ...]
    miscounted: tuple[str, ...]

    def findings(self) -> list[str]:
        """One sentence for each kind of what is wrong."""
        return [
            f"{len(keys)} {words}: {', '.join(keys[:_NAMED])}"
            for keys, words in (
                (self.unknown, "objects are in the store that no row refers to"),
                (self.uploads, "uploads were never completed nor aborted"),
                (self.unneeded, "objects are kept that nobody needs"),
                (self.missing, "objects are missing that rows point to"),
                (self.miscounted, "objects are counted wrongly"),
            )
            if keys
        ]


def leftovers(ground: Ground, *, within_s: float) -> Leftovers:
    """What is left when the farm has had so long to remove it."""
    deadline_s = time.monotonic() + within_s
    while True:
        found = look(_client(ground), "voxfarm", ground.database)
        if not found.findings() or time.monotonic() > deadline_s:
            return found
        ground.keep_up()
        time.sleep(_LOOK_S)


def look(client: Minio, bucket: str, database: Database) -> Leftovers:
    """What is left now, with nothing at work. The bucket must be the farm's alone."""
    stored = {str(found.object_name) for found in client.list_objects(bucket, recursive=True)} - {
        object_keys.PROBE
    }
    uploads = client._list_multipart_uploads(bucket).uploads
    pointed, counted = database.read(lambda conn: (_pointed(conn), _counted(conn)))
    return Leftovers(
        unknown=tuple(sorted(stored - counted.keys())),
        uploads=tuple(sorted(str(upload.object_name) for upload in uploads)),
        unneeded=tuple(sorted(key for key, refs in counted.items() if refs <= 0)),
        missing=tuple(
            key for key in sorted(pointed.keys() - stored) if not _is_there(client, bucket, key)
        ),
        miscounted=tuple(
            sorted(
                f"{key} ({counted.get(key)}, not {pointed[key]})"
                for key in counted.keys() | pointed.keys()
                if counted.get(key, 0) != pointed[key]
            )
        ),
    )


def _is_there(client: Minio, bucket: str, key: str) -> bool:
    """Whether an object can be read, be it listed or not.

    SeaweedFS may forget to list what it took while its disk was full: the entry of the folder
    above was refused, that of the file was not.
    """
    try:
        client.stat_object(bucket, key)
    except S3Error as error:
        if error.code != "NoSuchKey":
            raise
        return False
    return True


def _client(ground: Ground) -> Minio:
    environment = ground.store_environment()
    return Minio(
        environment["VOXFARM_S3_ENDPOINT"],
        access_key=environment["VOXFARM_S3_ACCESS_KEY"],
        secret_key=environment["VOXFARM_S3_SECRET_KEY"],
        secure=False,
        region="us-east-1",
    )


def _pointed(conn: Connection) -> Counter[str]:
    s, d = t.segment.c, t.deliverable.c
    audio = conn.execute(select(s.object_key).where(s.object_key.is_not(None))).scalars()
    return Counter([*audio, *conn.execute(select(d.object_key)).scalars()])


def _counted(conn: Connection) -> dict[str, int]:
    rows = conn.execute(select(t.stored_object.c.key, t.stored_object.c.refs))
    return {row.key: row.refs for row in rows}
