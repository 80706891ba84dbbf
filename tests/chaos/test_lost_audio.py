"""Stored audio that goes missing or is damaged on a real farm: the book is whole all the same."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle

import numpy as np
import pytest
from sqlalchemy import select, update

from shared.jobs import JobState
from shared.ledger import segment_records
from shared.ledger import tables as t
from shared.ledger.database import Database
from shared.ledger.segment_records import SegmentRecord
from shared.steps import StepKind, StepState
from shared.storage import ObjectStore
from tests.chaos.farm import DEADLINE_S, SENTENCES, ChaosFarm, opened
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos 2")]

Text = list[str]


def chapters(text: Text) -> list[dict[str, str]]:
    return [{"title": "", "text": "\n\n".join(text)}]


def text_of(name: str) -> Text:
    return [f"Of {name}. {sentence}" for sentence in SENTENCES[0]]


def spoken(text: Text, pcm: np.ndarray) -> bool:
    said = [sentence for line in text for sentence in line.replace(". ", ".\n").split("\n")]
    marks = decode(pcm.astype(np.float32) / 32_768, 24_000)
    return [m.hash_hex for m in marks] == [utterance_hash(s, "a", 1.0) for s in said]


@contextmanager
def frozen_after_the_plan(farm: ChaosFarm, database: Database, job_id: str) -> Iterator[None]:
    """No step runs between the plan's end and the end of this block."""
    planned = select(t.step.c.id).where(
        t.step.c.job_id == job_id,
        t.step.c.kind == StepKind.PLAN,
        t.step.c.state == StepState.DONE,
    )
    wait(lambda: database.read(lambda conn: conn.execute(planned).one_or_none()) is not None)
    workers = farm.watched().processes("cpu worker")
    assert workers
    for worker in workers:
        worker.suspend()
    try:
        yield
    finally:
        for worker in workers:
            worker.resume()


def wait(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_rendered(farm: ChaosFarm, job_id: str) -> bool:
    return farm.get(f"/v1/jobs/{job_id}")["state"] == JobState.ASSEMBLING


def rows_of(database: Database, job_id: str) -> list[SegmentRecord]:
    return database.read(lambda conn: segment_records.page(conn, job_id, limit=10_000))


def delete(store: ObjectStore, keys: Sequence[str]) -> None:
    store.delete(keys)


def damage(store: ObjectStore, keys: Sequence[str]) -> None:
    """Each in another way: cut short, emptied, another's bytes, one bit turned in every 100."""
    first = store.get(keys[0])
    ways: Iterator[Callable[[bytes], bytes]] = cycle(
        [
            lambda data: data[:-10],
            lambda _: b"",
            lambda _: first[:1_000],
            lambda data: bytes(b ^ (n % 100 == 0) for n, b in enumerate(data)),
        ]
    )
    for key, way in zip(keys, ways, strict=False):
        store.put(key, way(store.get(key)), content_type="audio/flac")


@pytest.mark.parametrize(
    ("harm", "crash"), [(delete, ""), (damage, ""), (delete, "assemble.reopened")]
)
def test_audio_lost_between_rendering_and_assembly_is_spoken_again(
    farm: ChaosFarm, harm: Callable[[ObjectStore, Sequence[str]], None], crash: str
) -> None:
    text = text_of("what was lost")
    [undisturbed] = farm.finish(farm.submit(chapters=chapters(text)))
    assert spoken(text, undisturbed)
    job_id = farm.submit(chapters=chapters(text))
    with opened(farm) as (database, store):
        with frozen_after_the_plan(farm, database, job_id):
            wait(lambda: is_rendered(farm, job_id))
            rows = rows_of(database, job_id)
            keys = sorted({str(row.object_key) for row in rows if row.object_key})
            assert len(keys) >= 4
            harmed = keys[::2] if harm is delete else keys
            harm(store, harmed)
            if crash:
                farm.crash_file.write_text(crash)
        [mine] = farm.finish(job_id)
    np.testing.assert_array_equal(mine, undisturbed)
    manifest = farm.manifest(job_id)
    assert manifest["gaps"] == []
    again = {s["index"] for s in manifest["segments"] if s["attempts"] > 1}  # type: ignore[attr-defined]
    lost = {row.index for row in rows if row.object_key in harmed}
    assert again
    assert again == lost if harm is delete else again <= lost
    assert not farm.crash_file.exists()


@pytest.mark.long
@pytest.mark.parametrize("harm", [delete, damage])
def test_a_new_job_of_a_text_whose_audio_was_lost_is_whole_and_so_is_the_next(
    farm: ChaosFarm, harm: Callable[[ObjectStore, Sequence[str]], None]
) -> None:
    text = text_of(f"what one did to it, {harm.__name__}")
    first = farm.submit(chapters=chapters(text), reuse=True)
    [whole] = farm.finish(first)
    with opened(farm) as (database, store):
        rows = rows_of(database, first)
        harm(store, sorted({str(row.object_key) for row in rows if row.object_key})[:4])
    second = farm.submit(chapters=chapters(text), reuse=True, format="wav")
    [mine] = farm.finish(second)
    np.testing.assert_array_equal(mine, whole)
    attempts = [s["attempts"] for s in farm.manifest(second)["segments"]]  # type: ignore[attr-defined]
    spoken_again = sum(attempts)
    assert 0 < spoken_again < len(attempts)
    reuse = farm.get(f"/v1/jobs/{second}")["reuse"]
    assert reuse["segments"] == reuse["of"] - spoken_again  # type: ignore[index]
    third = farm.submit(chapters=chapters([*text, "And one more."]), reuse=True)
    [longer] = farm.finish(third)
    assert spoken([*text, "And one more."], longer)
    if harm is delete:  # nothing but the new sentence; of what was damaged, all in an object goes
        assert sum(s["attempts"] for s in farm.manifest(third)["segments"]) == 1  # type: ignore[attr-defined]


@pytest.mark.long
def test_a_job_that_failed_over_lost_audio_is_healed_by_a_retry(farm: ChaosFarm) -> None:
    text = text_of("a store that keeps nothing")
    job_id = farm.submit(chapters=chapters(text))
    with opened(farm) as (database, store):
        with frozen_after_the_plan(farm, database, job_id):
            wait(lambda: is_rendered(farm, job_id))
            rows = rows_of(database, job_id)
            delete(store, sorted({str(row.object_key) for row in rows if row.object_key}))
            twice = update(t.segment).where(t.segment.c.job_id == job_id).values(losses=2)
            database.transact(lambda conn: conn.execute(twice))
        job = farm.end_of(job_id)
    assert (job["state"], job["error"]["code"]) == ("failed", "audio-lost")  # type: ignore[index]
    farm.post(f"/v1/jobs/{job_id}/retry")
    [pcm] = farm.finish(job_id)
    assert spoken(text, pcm)
