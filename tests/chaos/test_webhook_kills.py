"""A book's webhook arrives with one id and one body, whatever process dies on the way."""

import time
from collections.abc import Iterator

import pytest

from tests.chaos.farm import DEADLINE_S, ChaosFarm
from tests.receiver import Receiver, running_receiver

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos 2")]

CHAPTERS = [{"title": "One", "text": "\n\n".join(f"This is one {n} speaking." for n in range(5))}]
MORE_KINDS = ("scheduler", "valkey", "cpu worker")
POINTS = (
    pytest.param("manifest.committed", marks=pytest.mark.long),
    pytest.param("webhook.marked", marks=pytest.mark.long),
    "webhook.claimed",
    "webhook.sent",
    pytest.param("webhook.settled", marks=pytest.mark.long),
)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as receiver:
        yield receiver


def delivered(farm: ChaosFarm, job_id: str) -> None:
    """Wait until the ledger says that the job's one event was delivered."""
    webhook = farm.get(f"/v1/jobs/{job_id}")["webhook"]
    path = f"/v1/webhooks/{webhook['id']}/deliveries"  # type: ignore[index]
    deadline = time.monotonic() + DEADLINE_S
    while True:
        deliveries = farm.get(path)["data"]
        states = [one["state"] for one in deliveries if one["job_id"] == job_id]  # type: ignore[attr-defined]
        if states == ["delivered"]:
            return
        assert time.monotonic() < deadline, states
        time.sleep(0.1)


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_on_the_way_costs_no_webhook(
    farm: ChaosFarm, receiver: Receiver, point: str
) -> None:
    farm.crash_file.write_text(point)
    job_id = farm.submit(chapters=CHAPTERS, webhook={"url": receiver.url})
    farm.finish(job_id)
    delivered(farm, job_id)
    assert not farm.crash_file.exists(), f"no process passed {point}"
    assert len({(one.id, one.body) for one in receiver.received}) == 1
    assert 1 <= len(receiver.received) <= 2


@pytest.mark.parametrize(
    "kind",
    ["deliver worker", *(pytest.param(k, marks=pytest.mark.long) for k in MORE_KINDS)],
)
def test_a_killed_process_costs_no_webhook(farm: ChaosFarm, receiver: Receiver, kind: str) -> None:
    job_id = farm.submit(chapters=CHAPTERS, webhook={"url": receiver.url})
    deadline = time.monotonic() + DEADLINE_S
    while not (victims := farm.watched().processes(kind)):  # the last test's may still restart
        assert time.monotonic() < deadline, f"no {kind} runs"
        time.sleep(0.1)
    victims[0].kill()
    farm.finish(job_id)
    delivered(farm, job_id)
    assert len({(one.id, one.body) for one in receiver.received}) == 1
