"""What is sent."""

import json

import pytest

from shared.webhooks import EventType
from worker.webhooks.payload import MAX_BODY_BYTES, payload

DATA = {
    "id": "01KB9Z7Q4C4F6W8Y2N3M5P7R9T",
    "state": "completed",
    "title": "Ein Buch",
    "metadata": {"order": "4711"},
    "created_at": 1_780_000_000.25,
    "ended_at": None,
}


def test_an_event_names_its_type_time_and_job_with_links_that_stay_good() -> None:
    body = payload(
        EventType.COMPLETED, 1_780_000_000.5, DATA, public_url="https://farm.example/api/"
    )
    event = json.loads(body)
    assert event["type"] == "job.completed"
    assert event["timestamp"] == "2026-05-28T20:26:40.500000Z"
    assert event["data"]["created_at"] == "2026-05-28T20:26:40.250000Z"
    assert event["data"]["ended_at"] is None
    assert event["data"]["links"] == {
        "self": "https://farm.example/api/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T",
        "deliverables": "https://farm.example/api/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T/deliverables",
    }


def test_without_a_public_address_links_are_paths() -> None:
    event = json.loads(payload(EventType.FAILED, 0.0, DATA, public_url=""))
    assert event["data"]["links"]["self"] == "/v1/jobs/01KB9Z7Q4C4F6W8Y2N3M5P7R9T"


@pytest.mark.parametrize("unit", ["x", "語", "\x01", "😀"])
def test_a_body_stays_below_its_limit_by_leaving_metadata_out(unit: str) -> None:
    data = DATA | {"title": unit * 500, "metadata": {"much": unit * 30_000}}
    body = payload(EventType.COMPLETED, 0.0, data, public_url="https://farm.example")
    assert len(body.encode()) < MAX_BODY_BYTES
    assert json.loads(body)["data"]["metadata"] is None
    assert json.loads(body)["data"]["title"] == unit * 500


def test_a_test_event_has_no_links() -> None:
    event = json.loads(payload(EventType.TEST, 0.0, {"webhook_id": "x"}, public_url=""))
    assert event["data"] == {"webhook_id": "x"}
