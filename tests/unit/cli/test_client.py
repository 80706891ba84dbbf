"""The client keeps its word while the farm is away, refuses, or is something else altogether."""

from collections.abc import Iterator

import pytest

from cli.client import FarmClient
from cli.errors import FarmAwayError
from cli.job_request import JobRequest
from cli.ports import free_port
from shared.errors import ConflictError, FatalError, NotFoundError, UsageError
from shared.jobs import JobState
from tests.unit.cli.farm_double import (
    FarmDouble,
    a_job,
    a_progress,
    breaks,
    farm_double,
    refuses,
    says,
    streams,
)


@pytest.fixture
def farm() -> Iterator[FarmDouble]:
    with farm_double() as farm:
        yield farm


@pytest.fixture
def client(farm: FarmDouble) -> Iterator[FarmClient]:
    with FarmClient(farm.url, patience_s=5.0, sleep=lambda _: None) as client:
        yield client


def test_a_submit_that_broke_is_sent_again_under_the_same_key(
    farm: FarmDouble, client: FarmClient
) -> None:
    farm.on("POST", "/v1/jobs", breaks, refuses(503, "busy"), says(a_job("accepted"), 201))
    job = client.submit(JobRequest(text="Hello — 世界.", seed=3))
    assert job.state is JobState.ACCEPTED
    sent = farm.asked("/v1/jobs")
    assert len(sent) == 3
    assert len({request.headers["Idempotency-Key"] for request in sent}) == 1
    assert {request.body for request in sent} == {'{"text":"Hello — 世界.","seed":3}'.encode()}


def test_two_submits_are_two_jobs(farm: FarmDouble, client: FarmClient) -> None:
    farm.on("POST", "/v1/jobs", says(a_job("accepted"), 201))
    client.submit(JobRequest(text="a"))
    client.submit(JobRequest(text="a"))
    keys = {request.headers["Idempotency-Key"] for request in farm.asked("/v1/jobs")}
    assert len(keys) == 2


def test_a_refusal_is_a_usage_error_with_its_fields(farm: FarmDouble, client: FarmClient) -> None:
    farm.on(
        "POST",
        "/v1/jobs",
        refuses(422, "There is no voice 'x'.", "unknown-voice", choices=["heart", "b"], offset=7),
    )
    with pytest.raises(UsageError) as caught:
        client.submit(JobRequest(text="a", voice="x"))
    assert str(caught.value) == "There is no voice 'x'. Choices: heart, b"
    assert caught.value.code == "unknown-voice"
    assert caught.value.fields == {"choices": ["heart", "b"], "offset": 7}


@pytest.mark.parametrize(
    ("status", "error"), [(404, NotFoundError), (409, ConflictError), (500, FatalError)]
)
def test_each_refusal_has_its_class(
    farm: FarmDouble, client: FarmClient, status: int, error: type[Exception]
) -> None:
    farm.on("GET", "/v1/jobs/j1", refuses(status, "No."))
    with pytest.raises(error, match=r"No\."):
        client.job("j1")


def test_a_key_goes_with_every_request_and_a_broken_one_with_none(farm: FarmDouble) -> None:
    farm.on("GET", "/v1/voices", says({"voices": []}))
    with FarmClient(farm.url, key="vxf_a_b") as client:
        client.voices()
        client.is_ready()
    assert {request.headers["Authorization"] for request in farm.seen} == {"Bearer vxf_a_b"}
    for broken in ("", " ", "schl\u00fcssel", "a\nHost: x"):
        with pytest.raises(UsageError, match="no API key"):
            FarmClient(farm.url, key=broken)


@pytest.mark.parametrize(
    ("status", "code"), [(503, "farm-full"), (429, "over-quota"), (429, "rate-limited")]
)
def test_no_room_is_waited_for_and_then_said(farm: FarmDouble, status: int, code: str) -> None:
    problem = {"status": status, "code": code, "detail": "Come again."}
    no_room = says(problem, status, Content_Type="application/problem+json", Retry_After="7")
    farm.on("POST", "/v1/jobs", no_room, says(a_job("accepted"), 201))
    slept_s = list[float]()
    with FarmClient(farm.url, patience_s=60.0, sleep=slept_s.append) as client:
        assert client.submit(JobRequest(text="a")).id == "j1"
    assert len(slept_s) == 1
    assert slept_s[0] >= 7.0
    farm.on("POST", "/v1/jobs", no_room)
    with (
        FarmClient(farm.url, patience_s=0.0) as client,
        pytest.raises(FarmAwayError, match=r"takes no more now \(Come again\.\)"),
    ):
        client.submit(JobRequest(text="a"))


def test_another_server_is_not_taken_for_a_farm(farm: FarmDouble, client: FarmClient) -> None:
    with pytest.raises(FatalError, match="does not look like a Voxfarm API"):
        client.voices()
    farm.on("GET", "/v1/voices", says({"hello": "world"}))
    with pytest.raises(FatalError, match="cannot read"):
        client.voices()


def test_nobody_there_is_said_after_patience_has_run_out() -> None:
    now_s = 0.0

    def sleep(delay_s: float) -> None:
        nonlocal now_s
        now_s += delay_s

    url = f"http://127.0.0.1:{free_port()}"
    with FarmClient(url, patience_s=30.0, clock=lambda: now_s, sleep=sleep) as client:
        assert not client.is_ready()
        with pytest.raises(FarmAwayError, match="no farm answers at"):
            client.voices()
    assert 30.0 <= now_s < 31.0


def test_a_farm_that_moved_is_asked_for_its_new_address(farm: FarmDouble) -> None:
    farm.on("GET", "/v1/jobs/j1", says(a_job()))
    gone = f"http://127.0.0.1:{free_port()}"
    asked = list[str]()

    def locate() -> str:
        asked.append("where?")
        if len(asked) < 3:
            raise FarmAwayError("not yet")
        return farm.url

    with FarmClient(gone, locate=locate, sleep=lambda _: None) as client:
        assert client.job("j1").id == "j1"
        assert client.url == farm.url
    assert len(asked) == 3


def test_following_goes_on_through_breaks_until_the_job_has_ended(
    farm: FarmDouble, client: FarmClient
) -> None:
    farm.on(
        "GET",
        "/v1/jobs/j1/events",
        streams(("progress", a_job()), cut=True),
        breaks,
        refuses(503, "starting"),
        streams(("progress", a_job(progress=a_progress(segments_done=9)))),
        streams(("hello", {}), ("end", a_job("completed"))),
    )
    views = list(client.follow("j1"))
    assert [view.state for view in views] == ["rendering", "rendering", "completed"]
    assert views[1].progress.segments_done == 9


def test_following_a_job_that_is_not_there_ends_at_once(client: FarmClient) -> None:
    with pytest.raises(FatalError, match="404"):
        list(client.follow("j1"))


def test_a_listing_is_read_to_its_last_page(farm: FarmDouble, client: FarmClient) -> None:
    farm.on(
        "GET",
        "/v1/jobs",
        says({"data": [a_job(id="a"), a_job(id="b")], "next_cursor": "C+/=&"}),
        says({"data": [a_job(id="c")], "next_cursor": None}),
    )
    assert [job.id for job in client.jobs(state="failed")] == ["a", "b", "c"]
    paths = [request.path for request in farm.seen]
    assert paths[0] == "/v1/jobs?state=failed&limit=100"
    assert paths[1].endswith("cursor=C%2B%2F%3D%26")


def test_a_job_id_cannot_lead_to_another_path(farm: FarmDouble, client: FarmClient) -> None:
    with pytest.raises(FatalError):
        client.cancel("../../x?y#z")
    assert farm.seen[0].path == "/v1/jobs/..%2F..%2Fx%3Fy%23z/cancel"


@pytest.mark.parametrize("url", ["", "localhost:8080", "ftp://x", "http://", "http://[::1", "x"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        FarmClient(url)


def test_loopback_is_never_reached_through_a_proxy(
    farm: FarmDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    farm.on("GET", "/readyz", says({}))
    with FarmClient(farm.url) as client:
        assert client.is_ready()
