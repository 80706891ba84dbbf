"""A commit whose answer is lost on the way, and so is tried again, has happened once."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest
from sqlalchemy import Connection

from cli.servers.valkey import ValkeyServer
from shared.farm import Farm, farm_of
from shared.jobs import JobState
from shared.ledger import deliverables, settling
from shared.ledger.database import Database
from shared.ledger.migrate import migrate
from shared.ledger.renderings import Audio
from shared.settings import Settings
from shared.steps import StepKind
from tests.contract.ledger import shelf, story
from worker.assembling import run_assemble
from worker.assembly.segment_audio import encode_segment

T = TypeVar("T")


class Forgetful(Database):
    """A ledger that hears no answer to its first try of anything, and so tries it again."""

    def transact(self, work: Callable[[Connection], T], *, patience_s: float | None = None) -> T:
        super().transact(work, patience_s=patience_s)
        return super().transact(work, patience_s=patience_s)


@pytest.fixture
def farm(valkey: ValkeyServer, s3_settings: Settings, tmp_path: Path) -> Iterator[Farm]:
    settings = s3_settings.model_copy(update={"data_dir": tmp_path, "redis_url": valkey.url})
    with farm_of(settings) as farm:
        migrate(farm.database)
        farm.store.ensure_bucket()
        yield farm


def test_files_that_were_committed_unheard_are_not_deleted(farm: Farm) -> None:
    job_id = story.planned_job(farm.database, per_part=2)
    data = encode_segment(np.full(2_400, 0.5, np.float32), 24_000)
    farm.store.put("audio", data, content_type="audio/flac")
    sha256 = hashlib.sha256(data).hexdigest()
    audio = Audio("audio", 0, len(data), sha256, 2_400, 24_000)
    claims = [story.must_claim(farm.database, message) for message in story.feed(farm.database)]
    farm.database.transact(
        lambda conn: settling.commit(conn, job_id, [(c.index, c.token, audio) for c in claims])
    )
    forgetful = Forgetful(farm.settings.sqlalchemy_url)
    deaf = replace(farm, database=forgetful)
    for _part_then_job in range(2):
        run_assemble(deaf, story.claim_step(farm.database, job_id, StepKind.ASSEMBLE))
    assert shelf.state(farm.database, job_id) is JobState.COMPLETED
    files = farm.database.read(lambda conn: deliverables.of_job(conn, job_id))
    assert [file.kind for file in files] == ["audio", "manifest"]
    for file in files:
        found = farm.store.stat(file.object_key)
        assert found is not None
        assert found.size_bytes == file.size_bytes
    shelf.check_references(farm.database)
    forgetful.close()
