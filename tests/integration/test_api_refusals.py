"""Whatever is wrong with a submission, it gets its own problem and leaves no trace."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.submission import Submission
from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info

CANARY = "the canary sings at midnight"
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningApi]:
    """One server for the module: nothing that is sent here may change anything."""
    limits = without_servers(
        tmp_path_factory.mktemp("farm"),
        max_body_bytes=100_000,
        max_job_chars=20_000,
        max_parts=5,
    )
    with running_api(limits) as api:
        api.publish(engine_info(), engine_info("tone", testing=True))
        yield api


@pytest.fixture(autouse=True)
def nothing_is_written(api: RunningApi) -> Iterator[None]:
    yield
    assert set(api.rows().values()) == {0}


def as_problem(answer: httpx.Response) -> tuple[int, str]:
    """Check the form of a problem and return what tells it apart."""
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == answer.status_code
    assert problem["type"] == f"urn:voxfarm:problem:{problem['code']}"
    assert problem["title"]
    assert problem["detail"]
    assert CANARY not in answer.text
    assert len(answer.content) < 10_000
    return answer.status_code, problem["code"]


def post(api: RunningApi, body: bytes) -> httpx.Response:
    """The answer to a submit, after a quote was answered in the very same way."""
    quoted = api.client.post("/v1/jobs/quote", content=body, headers=JSON)
    submitted = api.client.post("/v1/jobs", content=body, headers=JSON)
    assert (quoted.status_code, quoted.content) == (submitted.status_code, submitted.content)
    return submitted


@pytest.mark.parametrize(
    ("members", "status", "code"),
    [
        ({"text": ""}, 422, "empty-text"),
        ({"text": " \n\t "}, 422, "nothing-speakable"),
        ({"text": "?! ... \u2014 \u2026"}, 422, "nothing-speakable"),
        ({"text": "Hello \x07 there."}, 422, "control-character"),
        ({"text": "Nul \x00 inside."}, 422, "control-character"),
        ({"text": "He said 你好."}, 422, "unspeakable-text"),
        ({"text": f"{CANARY}. Привет."}, 422, "unspeakable-text"),
        ({"text": "你好, Привет!", "on_unspeakable": "skip"}, 422, "nothing-speakable"),
        ({"text": "x" * 20_001}, 413, "text-too-long"),
        ({"text": "a", "voice": "bob"}, 422, "unknown-voice"),
        ({"text": "a", "engine": "espeak"}, 422, "unknown-engine"),
        ({"text": "a", "engine": "tone"}, 403, "testing-engine"),
        ({"text": "a", "language": "zh"}, 422, "unknown-language"),
        ({"text": "a", "sample_rate_hz": 11_025}, 422, "unknown-sample-rate"),
        ({"text": "a", "colour": "red"}, 422, "unknown-field"),
        ({"text": "a", "webhook": {"url": "http://x.example"}}, 422, "bad-webhook-url"),
        ({"text": "a", "title": "x\x00"}, 422, "control-character"),
        ({"text": "a", "speed": 9}, 422, "invalid-field"),
        ({"text": "a", "seed": 2**63}, 422, "invalid-field"),
        ({"text": "a", "metadata": {"k": "v" * 9_000}}, 422, "metadata-too-large"),
        ({"text": "a", "metadata": {"k": CANARY, "l": 1}}, 422, "invalid-field"),
        ({}, 422, "text-or-chapters"),
        ({"text": "a", "chapters": [{"text": "b"}]}, 422, "text-or-chapters"),
        ({"chapters": []}, 422, "empty-text"),
        ({"chapters": [{"text": "a"}] * 6}, 422, "too-many-chapters"),
        ({"chapters": [{"text": "fine"}, {"text": "***"}]}, 422, "nothing-speakable"),
        ({"chapters": [{"text": "x" * 10_001}, {"text": "x" * 10_000}]}, 413, "text-too-long"),
        ([], 422, "invalid-field"),
        (CANARY, 422, "invalid-field"),
    ],
)
def test_a_submission_that_cannot_be_served_says_why(
    api: RunningApi, members: object, status: int, code: str
) -> None:
    assert as_problem(post(api, json.dumps(members).encode())) == (status, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "bad-json"),
        (b'{"text": "a"', "bad-json"),
        (b'{"text": "a\nb"}', "bad-json"),
        (b'{"text": "a"}trailing', "bad-json"),
        (b'{"text": "caf\xe9"}', "bad-utf8"),
        (b'{"text": "a", "text": "b"}', "duplicate-key"),
        (b'{"text": "a", "speed": NaN}', "bad-number"),
        (b'{"text": "a", "speed": Infinity}', "bad-number"),
        (b'{"text": "a", "speed": 1e400}', "bad-number"),
        (b'{"text": "a", "seed": ' + b"1" * 10_000 + b"}", "bad-number"),
        (b'{"text": "half \\ud83d pair"}', "lone-surrogate"),
        (b'{"text": "a", "metadata": {"\\udead": "v"}}', "lone-surrogate"),
        (b'{"text": ' + b"[" * 40_000, "json-too-deep"),
        (b'{"a":' * 10_000, "json-too-deep"),
    ],
)
def test_a_body_that_is_no_sound_json_says_why(api: RunningApi, body: bytes, code: str) -> None:
    assert as_problem(post(api, body)) == (400, code)


def test_the_place_of_the_fault_is_told(api: RunningApi) -> None:
    syntax = post(api, b'{\n  "text": "a",\n}').json()
    assert (syntax["line"], syntax["column"]) == (3, 1)
    foreign = post(api, json.dumps({"chapters": [{"text": "a"}, {"text": "Oh, 你好."}]}).encode())
    assert (foreign.json()["field"], foreign.json()["offset"]) == ("chapters.1.text", 4)
    assert foreign.json()["languages"] == ["en"]
    control = post(api, json.dumps({"text": "ab\x07"}).encode()).json()
    assert (control["field"], control["offset"]) == ("text", 2)


def test_choices_are_listed_and_testing_engines_are_not_among_them(api: RunningApi) -> None:
    voice = post(api, b'{"text": "a", "voice": "bob"}').json()
    assert voice["choices"] == ["heart", "oak"]
    assert post(api, b'{"text": "a", "engine": "x"}').json()["choices"] == ["hibari"]


def test_several_faults_are_told_together(api: RunningApi) -> None:
    answer = post(api, b'{"text": "a", "speed": 9, "tier": "x", "pauses": {"sentence_s": "1"}}')
    assert [error["field"] for error in answer.json()["errors"]] == [
        "tier",
        "speed",
        "pauses.sentence_s",
    ]


MEMBERS = sorted(Submission.model_fields)
odd_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["heart", "mp3", "rush", "\ud800", "en"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.sampled_from([*MEMBERS, "colour"]), odd_values, min_size=1))
def test_no_submission_however_odd_is_an_error_of_ours(
    api: RunningApi, members: dict[str, object]
) -> None:
    # The voice is unknown, so that even what happens to be sound writes nothing.
    body = json.dumps(members | {"voice": "nobody"}).encode("utf-8", "surrogatepass")
    status, _code = as_problem(post(api, body))
    assert 400 <= status < 500


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": ""},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": "application/jsonp"},
        {"Content-Encoding": "gzip"},
    ],
)
def test_only_plain_json_is_read(api: RunningApi, headers: dict[str, str]) -> None:
    answer = api.client.post(
        "/v1/jobs",
        content=b'{"text": "a"}',
        headers={"Content-Type": "application/json"} | headers,
    )
    assert as_problem(answer) == (415, "unsupported-media-type")


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/jobs/", "/v2/jobs", "/docs", "/v1/voices/x"])
def test_an_address_with_nothing_behind_it_is_a_problem_too(api: RunningApi, path: str) -> None:
    assert as_problem(api.client.get(path)) == (404, "not-found")


def test_a_wrong_method_is_told_the_right_ones(api: RunningApi) -> None:
    answer = api.client.delete("/v1/jobs")
    assert as_problem(answer) == (405, "method-not-allowed")
    assert set(answer.headers["allow"].replace(" ", "").split(",")) <= {"GET", "POST"}


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/v1/jobs?limit=0", "query.limit"),
        ("/v1/jobs?limit=201", "query.limit"),
        ("/v1/jobs?limit=ten", "query.limit"),
        ("/v1/jobs?state=asleep", "query.state.0"),
        ("/v1/jobs?tier=urgent", "query.tier"),
        ("/v1/jobs?cursor=1;DROP", "query.cursor"),
        ("/v1/jobs?created_from=yesterday", "query.created_from"),
        ("/v1/jobs?created_from=2026-01-01T00:00:00", "query.created_from"),
        ("/v1/jobs?colour=red", "query.colour"),
        ("/v1/jobs/{id}/segments?cursor=-1", "query.cursor"),
        ("/v1/jobs/{id}/segments?cursor=99999999999999999999", "query.cursor"),
        ("/v1/jobs/{id}/segments?part=-1", "query.part"),
    ],
)
def test_a_wrong_parameter_is_named(api: RunningApi, path: str, field: str) -> None:
    answer = api.client.get(path.format(id="01KB9Z7Q4C4F6W8Y2N3M5P7R9T"))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid-parameter")
    assert answer.headers["content-type"] == "application/problem+json"
    assert [error["field"] for error in answer.json()["errors"]] == [field]


@pytest.mark.parametrize(
    "job_id",
    [
        "01KB9Z7Q4C4F6W8Y2N3M5P7R9T",
        "01kb9z7q4c4f6w8y2n3m5p7r9t",
        "nonsense",
        "%00",
        "..%2f..%2fetc",
        "x" * 5_000,
        "%F0%9F%98%80",
    ],
)
@pytest.mark.parametrize(
    "what", ["", "/events", "/segments", "/deliverables", "/cancel", "/pause", "/resume"]
)
def test_a_job_that_is_not_there_is_not_found(api: RunningApi, job_id: str, what: str) -> None:
    method = "POST" if what in {"/cancel", "/pause", "/resume"} else "GET"
    answer = api.client.request(method, f"/v1/jobs/{job_id}{what}")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] in {"job-not-found", "not-found"}


def test_a_farm_that_is_still_starting_asks_for_patience(tmp_path: Path) -> None:
    with running_api(without_servers(tmp_path)) as api:
        answer = api.submit()
        assert as_problem(answer) == (503, "not-ready")
        assert int(answer.headers["retry-after"]) > 0
        assert api.rows()["job"] == 0
        assert api.submit(text="").status_code == 503
        assert api.submit(colour="red").status_code == 422
