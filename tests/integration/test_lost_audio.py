"""Every way in which stored audio can be lost, found by a real assembly on a real store."""

import hashlib
import io
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from sqlalchemy import update

from cli.servers.seaweed import SeaweedServer
from shared import object_keys
from shared.errors import NotFoundError, StoreError
from shared.farm import Farm, farm_of
from shared.jobs import JobState
from shared.ledger import deliverables, feeding, renderings, segment_records, settling
from shared.ledger import tables as t
from shared.ledger.renderings import Audio
from shared.ledger.segment_records import SegmentRecord
from shared.ledger.segments import Claim
from shared.segments import SegmentState
from shared.settings import Settings
from shared.storage import ObjectStore, S3Store
from shared.tiers import Tier
from tests.contract.ledger import shelf, story
from worker.assembling import run_assemble
from worker.assembly.segment_audio import encode_segment
from worker.healing import DOUBTED_CLAIMS

RATE_HZ = 24_000
PARTS, PER_PART = 2, 3
TOGETHER = 4  # sentences an object: the first one holds the end of part 0 and of part 1


def tone(index: int) -> bytes:
    seconds = np.arange(RATE_HZ // 4) / RATE_HZ
    sound = 0.3 * np.sin(2 * np.pi * (300 + 50 * index) * seconds)
    return encode_segment(sound.astype(np.float32), RATE_HZ)


def speak(farm: Farm) -> list[int]:
    """Render what waits, several sentences an object, as the workers do. Returns their indexes."""
    story.feed(farm.database)  # an assembly that finds a loss has sent it already
    sent = farm.database.read(lambda conn: feeding.dispatched_before(conn, Tier.STANDARD, -1.0))
    claims = [story.must_claim(farm.database, message) for message in sent]
    claims.sort(key=lambda claim: claim.index)
    for first in range(0, len(claims), TOGETHER):
        store_and_commit(farm, claims[first : first + TOGETHER])
    return [claim.index for claim in claims]


def store_and_commit(farm: Farm, claims: Sequence[Claim]) -> None:
    job_id = claims[0].job_id
    key = object_keys.segment_audio(
        "default", job_id, claims[0].index, claims[0].token, together=len(claims)
    )
    rendered, data = [], b""
    for claim in claims:
        mine = tone(claim.index)
        audio = Audio(
            key, len(data), len(mine), hashlib.sha256(mine).hexdigest(), RATE_HZ // 4, RATE_HZ
        )
        rendered.append((claim.index, claim.token, audio))
        data += mine
    farm.store.put(key, data, content_type="audio/flac")
    farm.database.transact(lambda conn: settling.commit(conn, job_id, rendered))


def assemble(farm: Farm, job_id: str) -> None:
    """Run every step that the job has, and those that they lead to."""
    while (claimed := story.claim_any_step(farm.database, job_id)) is not None:
        run_assemble(farm, claimed)


def rows(farm: Farm, job_id: str) -> list[SegmentRecord]:
    return farm.database.read(lambda conn: segment_records.page(conn, job_id, limit=100))


def waiting(farm: Farm, job_id: str) -> list[int]:
    return [row.index for row in rows(farm, job_id) if row.state is not SegmentState.DONE]


def heard(farm: Farm, job_id: str) -> list[np.ndarray]:
    files = farm.database.read(lambda conn: deliverables.of_job(conn, job_id))
    audio = [farm.store.get(file.object_key) for file in files if file.kind == "audio"]
    return [soundfile.read(io.BytesIO(data), dtype="int16")[0] for data in audio]


@pytest.fixture
def spoken(farm: Farm) -> str:
    """A job whose every segment is stored: 0 to 3 in one object, 4 and 5 in another."""
    job_id = story.planned_job(farm.database, parts=PARTS, per_part=PER_PART)
    assert speak(farm) == list(range(PARTS * PER_PART))
    return job_id


Harm = Callable[[ObjectStore, SegmentRecord], None]


def put(store: ObjectStore, row: SegmentRecord, change: Callable[[bytes], bytes]) -> None:
    assert row.object_key is not None
    data = change(store.get(row.object_key))
    store.put(row.object_key, data, content_type="audio/flac")


def gone(store: ObjectStore, row: SegmentRecord) -> None:
    store.delete([str(row.object_key)])


def empty(store: ObjectStore, row: SegmentRecord) -> None:
    put(store, row, lambda _: b"")


def cut(store: ObjectStore, row: SegmentRecord) -> None:
    put(store, row, lambda data: data[: row.offset_bytes + row.size_bytes // 2])


def flipped(store: ObjectStore, row: SegmentRecord) -> None:
    at = row.offset_bytes + row.size_bytes // 2
    put(store, row, lambda data: data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


def shifted(store: ObjectStore, row: SegmentRecord) -> None:
    put(store, row, lambda data: b"\0" + data)


def anothers(store: ObjectStore, row: SegmentRecord) -> None:
    put(store, row, lambda _: tone(40) + tone(41))


@pytest.mark.parametrize(
    ("harm", "at", "lost"),
    [
        (gone, 0, [0, 1, 2, 3]),
        (gone, 5, [4, 5]),
        (empty, 0, [0, 1, 2, 3]),
        (cut, 0, [0, 1, 2, 3]),  # the part that wants 3 asks behind the object's end
        (cut, 2, [2, 3]),
        (flipped, 4, [4]),
        (shifted, 4, [4, 5]),
        (anothers, 4, [4, 5]),
    ],
)
def test_what_is_lost_is_found_in_one_look_and_spoken_again(
    farm: Farm, spoken: str, harm: Harm, at: int, lost: list[int]
) -> None:
    undisturbed = story.planned_job(farm.database, parts=PARTS, per_part=PER_PART, format="wav")
    speak(farm)
    assemble(farm, undisturbed)
    harm(farm.store, rows(farm, spoken)[at])
    assemble(farm, spoken)
    assert waiting(farm, spoken) == lost
    assert shelf.state(farm.database, spoken) is JobState.RENDERING
    assert speak(farm) == lost
    assemble(farm, spoken)
    assert shelf.state(farm.database, spoken) is JobState.COMPLETED
    for mine, theirs in zip(heard(farm, spoken), heard(farm, undisturbed), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    shelf.check_references(farm.database)


def test_the_same_text_finds_lost_audio_that_an_ended_job_left_and_is_whole(
    farm: Farm, spoken: str
) -> None:
    assemble(farm, spoken)
    gone(farm.store, rows(farm, spoken)[0])
    flipped(farm.store, rows(farm, spoken)[5])
    later = story.submit(farm.database, format="wav")
    story.plan(farm.database, later, parts=PARTS, per_part=PER_PART, reuse_of="default")
    assemble(farm, later)
    assert speak(farm) == [0, 1, 2, 3, 5]
    assemble(farm, later)
    for mine, theirs in zip(heard(farm, later), heard(farm, spoken), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    keys = [f"key{n}" for n in range(PARTS * PER_PART)]
    known = farm.database.read(lambda conn: renderings.known(conn, "default", keys))
    assert known == {"key0", "key1", "key2", "key3", "key5"}  # 4 lay beside what was damaged
    assert farm.store.stat(str(rows(farm, later)[0].object_key)) is not None


def test_a_store_that_is_away_loses_nothing(farm: Farm, settings: Settings, spoken: str) -> None:
    nowhere = settings.model_copy(update={"s3_endpoint": "127.0.0.1:1"})
    claimed = story.claim_any_step(farm.database, spoken)
    assert claimed is not None
    with farm_of(nowhere) as cut_off, pytest.raises(StoreError):
        run_assemble(cut_off, claimed)
    assert waiting(farm, spoken) == []
    run_assemble(farm, claimed)
    assemble(farm, spoken)
    assert shelf.state(farm.database, spoken) is JobState.COMPLETED


def rot(seaweed: SeaweedServer, data: bytes) -> int:
    """Overwrite some bytes of these on the store's own disk. Returns in how many places."""
    places = 0
    for volume in seaweed.folder.rglob("*.dat"):
        stored = volume.read_bytes()
        with volume.open("r+b") as disk:
            at = stored.find(data)
            while at >= 0:
                disk.seek(at + len(data) // 2)
                disk.write(b"\0" * 20)
                places += 1
                at = stored.find(data, at + 1)
    return places


@pytest.mark.long
@pytest.mark.slow
def test_an_object_that_rotted_on_the_stores_disk_is_doubted_in_the_end(
    farm: Farm, spoken: str, seaweed: SeaweedServer
) -> None:
    assert rot(seaweed, tone(5))
    first = story.claim_any_step(farm.database, spoken)
    while first is not None and first.part != 1:
        run_assemble(farm, first)
        first = story.claim_any_step(farm.database, spoken)
    assert first is not None
    with pytest.raises(StoreError):
        run_assemble(farm, first)
    assert waiting(farm, spoken) == []
    tried = update(t.step).where(t.step.c.id == first.id).values(token=DOUBTED_CLAIMS)
    farm.database.transact(lambda conn: conn.execute(tried))
    run_assemble(farm, replace(first, token=DOUBTED_CLAIMS))
    assert speak(farm) == [4, 5]
    assemble(farm, spoken)
    assert shelf.state(farm.database, spoken) is JobState.COMPLETED


@pytest.mark.long
def test_a_store_that_is_away_for_long_loses_nothing_either(
    farm: Farm, settings: Settings, spoken: str
) -> None:
    nowhere = settings.model_copy(update={"s3_endpoint": "127.0.0.1:1"})
    claimed = story.claim_any_step(farm.database, spoken)
    assert claimed is not None
    tried = update(t.step).where(t.step.c.id == claimed.id).values(token=DOUBTED_CLAIMS)
    farm.database.transact(lambda conn: conn.execute(tried))
    with farm_of(nowhere) as cut_off, pytest.raises(StoreError):
        run_assemble(cut_off, replace(claimed, token=DOUBTED_CLAIMS))
    assert waiting(farm, spoken) == []


class ForgetfulStore(S3Store):
    """Knows nothing of an object when first asked."""

    asked = 0

    def get(self, key: str, offset_bytes: int = 0, size_bytes: int | None = None) -> bytes:
        self.asked += 1
        if self.asked == 1:
            raise NotFoundError("no such object", code="object-not-found")
        return super().get(key, offset_bytes, size_bytes)


def test_audio_that_is_there_at_a_second_look_is_not_lost(
    farm: Farm, settings: Settings, spoken: str
) -> None:
    forgetful = replace(farm, store=ForgetfulStore(settings))
    claimed = story.claim_any_step(farm.database, spoken)
    assert claimed is not None
    with pytest.raises(StoreError, match="at a second look"):
        run_assemble(forgetful, claimed)
    assert waiting(farm, spoken) == []
    run_assemble(forgetful, claimed)
    assert waiting(farm, spoken) == []


def test_a_store_that_keeps_nothing_ends_the_job_in_words(farm: Farm, spoken: str) -> None:
    for _ in range(farm.settings.max_attempts):
        assert shelf.state(farm.database, spoken) is not JobState.FAILED
        gone(farm.store, rows(farm, spoken)[5])
        assemble(farm, spoken)
        speak(farm)
    assert shelf.state(farm.database, spoken) is JobState.FAILED
    shelf.check_references(farm.database)
