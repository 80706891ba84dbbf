"""Following a job over a real connection, while the ledger moves underneath."""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import event, select

from cli.servers.valkey import ValkeyServer
from shared.ledger import jobs, plans, segments, settling, step_turns, steps
from shared.ledger import tables as t
from shared.ledger.plans import PlannedPart, PlannedSegment
from shared.segments import SegmentKind
from shared.steps import StepKind
from shared.tiers import Tier
from tests.contract.ledger import story
from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info


@pytest.fixture
def api(valkey: ValkeyServer, tmp_path: Path) -> Iterator[RunningApi]:
    with running_api(without_servers(tmp_path, redis_url=valkey.url)) as api:
        api.publish(engine_info())
        yield api


class Story:
    """A job that a worker would carry through, move by move."""

    def __init__(self, api: RunningApi, sentences: int = 2) -> None:
        self.job = api.submit(text="One. " * sentences).json()
        self.id = self.job["id"]
        self._database = api.farm.database
        self._sentences = sentences

    def plan(self) -> None:
        def claim_and_plan(conn: Any) -> None:
            step_turns.dispatch(conn, window=2)  # unless the API has sent it already
            step = conn.execute(select(t.step).where(t.step.c.job_id == self.id)).one()
            claimed = steps.claim(conn, step.id, step.dispatch_no, lease_s=60)
            assert claimed is not None
            assert claimed.kind is StepKind.PLAN
            plans.start_planning(conn, self.id)
            part = PlannedPart(0, "I", 0, 5 * self._sentences, self._sentences, self._sentences * 4)
            assert plans.open_rendering(conn, claimed, [part], skipped=0, lease_s=60)
            pieces = [
                PlannedSegment(
                    index=i,
                    part=0,
                    kind=SegmentKind.SPEECH,
                    start=5 * i,
                    end=5 * i + 5,
                    text="One.",
                    pause_after_s=0.3,
                    reason="",
                    due_at=time.time(),
                    content_key="",
                )
                for i in range(self._sentences)
            ]
            assert plans.write_chunk(conn, claimed, Tier.STANDARD, pieces, lease_s=60)
            assert plans.finish_plan(conn, claimed) == []

        self._database.transact(claim_and_plan)

    def speak(self) -> None:
        """Render the next sentence: one second of audio."""

        [message] = story.feed(self._database, limit=1)

        def claim_and_commit(conn: Any) -> None:
            claimed = segments.claim(conn, self.id, message.index, message.dispatch_no, lease_s=60)
            assert claimed is not None
            rendered = [(claimed.index, claimed.token, story.audio_of(claimed))]
            [committed] = settling.commit(conn, self.id, rendered)
            assert committed.won

        self._database.transact(claim_and_commit)

    def cancel(self) -> None:
        self._database.transact(lambda conn: jobs.cancel(conn, "default", self.id))


def events_of(response: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    kind = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        if line.startswith("data: "):
            yield kind, json.loads(line.removeprefix("data: "))


def test_a_listener_sees_the_job_move_and_end(api: RunningApi) -> None:
    story = Story(api)
    with api.client.stream("GET", story.job["links"]["events"]) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert stream.headers["cache-control"] == "no-store"
        events = events_of(stream)
        kind, first = next(events)
        assert (kind, first) == ("progress", story.job)
        story.plan()
        assert next(events)[1]["progress"]["segments_total"] == 2
        story.speak()
        half = next(events)[1]
        assert (half["state"], half["progress"]["fraction"]) == ("rendering", 0.5)
        assert half["progress"]["audio_s"] == 1.0
        assert half["started_at"] is not None
        assert half["progress"]["eta_s"] is None  # one sentence shows no rate
        story.cancel()
        kind, last = next(events)
        assert (kind, last["state"]) == ("end", "cancelled")
        assert list(events) == []
    assert last == api.client.get(story.job["links"]["self"]).json()


def test_progress_comes_at_most_twice_a_second(api: RunningApi) -> None:
    story = Story(api, sentences=30)
    story.plan()
    came: list[float] = []
    with api.client.stream("GET", story.job["links"]["events"]) as stream:
        for _kind, job in events_of(stream):
            came.append(time.monotonic())
            if len(came) == 3:
                story.cancel()
            elif not job["ended_at"]:
                for _ in range(5):
                    story.speak()
    gaps = [later - earlier for earlier, later in pairwise(came)]
    assert len(came) == 4
    assert min(gaps) > 0.4


def test_a_job_that_has_ended_is_told_at_once_whatever_event_was_seen_last(
    api: RunningApi,
) -> None:
    story = Story(api)
    story.cancel()
    for last_seen in ("", "17", "x" * 1_000):
        answer = api.client.get(story.job["links"]["events"], headers={"Last-Event-ID": last_seen})
        assert [kind for kind, _ in events_of(answer)] == ["end"]


def test_a_hundred_listeners_hold_no_thread_and_leave_no_trace(api: RunningApi) -> None:
    story = Story(api)
    opened = threading.Barrier(101, timeout=60)

    def listen(_: int) -> list[str]:
        with (
            httpx.Client(base_url=api.url, timeout=60, trust_env=False) as client,
            client.stream("GET", story.job["links"]["events"]) as stream,
        ):
            events = events_of(stream)
            kinds = [next(events)[0]]
            opened.wait()
            return kinds + [kind for kind, _ in events]

    with ThreadPoolExecutor(100) as pool:
        listeners = [pool.submit(listen, i) for i in range(100)]
        opened.wait()
        began = time.monotonic()
        assert api.client.get(story.job["links"]["self"]).status_code == 200
        assert time.monotonic() - began < 10
        busy = [t for t in threading.enumerate() if t.name == "AnyIO worker thread"]
        assert len(busy) < 20
        story.cancel()
        assert {tuple(listener.result()) for listener in listeners} == {("progress", "end")}


def test_a_listener_that_leaves_is_forgotten(api: RunningApi) -> None:
    looks = 0

    def count(*_: object) -> None:
        nonlocal looks
        looks += 1

    story = Story(api)
    event.listen(api.farm.database.engine, "begin", count)
    with api.client.stream("GET", story.job["links"]["events"]) as stream:
        next(events_of(stream))
        time.sleep(1.2)
        assert looks > 0
    time.sleep(0.5)
    looks = 0
    time.sleep(1.2)
    assert looks == 0


def test_open_streams_do_not_keep_a_server_from_stopping(
    valkey: ValkeyServer, tmp_path: Path
) -> None:
    with running_api(without_servers(tmp_path, redis_url=valkey.url)) as api:
        api.publish(engine_info())
        story = Story(api)
        stream = httpx.stream(
            "GET", api.url + story.job["links"]["events"], timeout=30, trust_env=False
        )
        response = stream.__enter__()
        events = events_of(response)
        assert next(events)[0] == "progress"
        began = time.monotonic()
    assert time.monotonic() - began < 4
    assert list(events) == []
    stream.__exit__(None, None, None)
