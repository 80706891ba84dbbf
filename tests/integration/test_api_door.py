"""The door of a real API: keys, tenants, quotas, promises and rates. Redis is away all the time."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Connection

from api.keyring import FRESH_S
from api.main import create_app
from shared.api_keys import NewKey, new_key
from shared.errors import SetupError
from shared.farm import farm_of
from shared.ledger import keys
from shared.ledger import tables as t
from shared.ledger.clock import read_clock
from shared.ledger.migrate import migrate
from shared.tenants import NO_QUOTA, Quota
from shared.tiers import Tier
from tests.contract.ledger import story
from tests.integration.running_api import RunningApi, running_api, without_servers
from tests.unit.api.engines import engine_info

LOCAL_KEY = new_key().text
ADMISSIBLE = {"ok": True, "code": None, "detail": None, "retry_after_s": None}
LONG = "This sentence is exactly fifty-five characters in all.. " * 20


@pytest.fixture
def api(tmp_path: Path) -> Iterator[RunningApi]:
    with an_api(tmp_path) as api:
        yield api


@contextmanager
def an_api(folder: Path, **changes: object) -> Iterator[RunningApi]:
    with running_api(without_servers(folder, local_key=LOCAL_KEY, **changes)) as api:
        api.publish(engine_info(), engine_info("tone", testing=True))
        yield api


def make_key(
    api: RunningApi,
    tenant: str = "news",
    *,
    quota: Quota = NO_QUOTA,
    tiers: tuple[Tier, ...] = tuple(Tier),
) -> NewKey:
    key = new_key()
    api.farm.database.transact(
        lambda conn: keys.create(conn, key.id, key.sha256, tenant=tenant, quota=quota, tiers=tiers)
    )
    return key


def bearer(key: NewKey | str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key.text if isinstance(key, NewKey) else key}"}


def submit(api: RunningApi, key: NewKey | str, **body: object) -> httpx.Response:
    wish = {"text": "Hello, world."} | body
    return api.client.post("/v1/jobs", json=wish, headers=bearer(key))


def quote(api: RunningApi, key: NewKey | str | None = None, **body: object) -> httpx.Response:
    headers = bearer(key) if key is not None else {}
    wish = {"text": "Hello, world."} | body
    return api.client.post("/v1/jobs/quote", json=wish, headers=headers)


def refused(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


def test_without_a_key_ever_made_this_machine_is_served_as_before(api: RunningApi) -> None:
    assert api.submit().status_code == 201
    assert submit(api, LOCAL_KEY).status_code == 201
    assert len(api.client.get("/v1/jobs").json()["data"]) == 2
    assert refused(submit(api, new_key())) == (401, "unauthorized")


def test_the_first_key_closes_the_door_within_seconds(api: RunningApi) -> None:
    before = api.submit().json()
    key = make_key(api)
    time.sleep(FRESH_S + 0.1)
    for path in ("/v1/jobs", "/v1/voices", "/v1/engines", before["links"]["self"], "/nowhere"):
        answer = api.client.get(path)
        assert refused(answer) == (401, "unauthorized"), path
        assert answer.headers["www-authenticate"] == 'Bearer realm="voxfarm"'
    assert refused(api.submit()) == (401, "unauthorized")
    assert submit(api, key).status_code == 201
    for path in ("/livez", "/metrics", "/openapi.json"):
        assert api.client.get(path).status_code == 200, path
    assert api.client.get("/readyz").status_code == 503  # Redis and the store are away
    assert api.client.get(before["links"]["self"], headers=bearer(LOCAL_KEY)).json() == before


def test_a_tenant_sees_nothing_of_another(api: RunningApi) -> None:
    news, books = make_key(api, "news"), make_key(api, "books")
    job = submit(api, news).json()
    for what in ("", "/segments", "/deliverables", "/events"):
        path = f"/v1/jobs/{job['id']}{what}"
        assert refused(api.client.get(path, headers=bearer(books))) == (404, "job-not-found")
    cancel = api.client.post(job["links"]["cancel"], headers=bearer(books))
    assert refused(cancel) == (404, "job-not-found")
    assert api.client.get("/v1/jobs", headers=bearer(books)).json()["data"] == []
    [seen] = api.client.get("/v1/jobs", headers=bearer(news)).json()["data"]
    assert (seen["id"], seen["state"]) == (job["id"], "accepted")


def test_the_same_idempotency_key_of_two_tenants_makes_two_jobs(api: RunningApi) -> None:
    ids = {
        api.client.post(
            "/v1/jobs",
            json={"text": "Hello."},
            headers=bearer(make_key(api, tenant)) | {"Idempotency-Key": "k"},
        ).json()["id"]
        for tenant in ("news", "books")
    }
    assert len(ids) == 2


@pytest.mark.parametrize(
    "header",
    ["Bearer x", "Basic dXNlcjpwdw==", "Bearer", "", f"Bearer {new_key().text}", "Bearer \xe9"],
    ids=["short", "basic", "empty", "none", "unknown", "not-ascii"],
)
def test_a_wrong_key_is_told_apart_from_none_and_never_repeated(
    api: RunningApi, header: str
) -> None:
    answer = api.client.get("/v1/jobs", headers={"Authorization": header.encode("latin-1")})
    assert refused(answer) == (401, "unauthorized")
    assert answer.headers["www-authenticate"].endswith('error="invalid_token"')
    shown = header.removeprefix("Bearer").strip()
    assert len(shown) < 2 or shown not in answer.text


def test_a_revoked_key_stops_in_mid_use_and_so_does_its_stream(api: RunningApi) -> None:
    key, other = make_key(api), make_key(api)
    job = submit(api, key).json()
    with api.client.stream("GET", job["links"]["events"], headers=bearer(key)) as stream:
        lines = stream.iter_lines()
        assert next(line for line in lines if line.startswith("event:")) == "event: progress"
        api.farm.database.transact(lambda conn: keys.revoke(conn, key.id))
        revoked_at = time.monotonic()
        assert not [line for line in lines if line.startswith("event: end")]
        assert time.monotonic() - revoked_at < FRESH_S + 2.0
    assert refused(api.client.get("/v1/jobs", headers=bearer(key))) == (401, "unauthorized")
    assert api.client.get(job["links"]["self"], headers=bearer(other)).status_code == 200
    api.farm.database.transact(lambda conn: keys.revoke(conn, other.id))
    time.sleep(FRESH_S + 0.1)
    assert refused(api.client.get("/v1/jobs")) == (401, "unauthorized")  # the last one is gone


def test_a_tier_that_a_key_may_not_use_is_refused(api: RunningApi) -> None:
    key = make_key(api, tiers=(Tier.STANDARD, Tier.BULK))
    answer = submit(api, key, tier="rush")
    assert refused(answer) == (403, "tier-not-allowed")
    assert answer.json()["choices"] == ["standard", "bulk"]
    quoted = quote(api, key, tier="rush")
    assert (quoted.status_code, quoted.content) == (answer.status_code, answer.content)
    assert submit(api, key, tier="bulk").status_code == 201
    assert quote(api, key, tier="bulk").json()["admissible"] == ADMISSIBLE
    assert api.rows()["job"] == 1


@pytest.fixture(params=["sqlite", "postgresql"])
def any_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RunningApi]:
    url = ""
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_database")
    with an_api(tmp_path, database_url=url) as api:
        yield api


def test_fifty_at_once_never_take_a_tenant_past_its_quota(any_ledger: RunningApi) -> None:
    api = any_ledger
    key, other = make_key(api, quota=Quota(jobs=6)), make_key(api, "other")
    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda _: submit(api, key), range(50)))
    assert sorted(answer.status_code for answer in answers) == [201] * 6 + [429] * 44
    turned_away = next(answer for answer in answers if answer.status_code == 429)
    assert refused(turned_away) == (429, "over-quota")
    assert int(turned_away.headers["retry-after"]) >= 1
    assert turned_away.json()["quota_jobs"] == 6
    assert api.rows()["job"] == api.rows()["step"] == 6
    assert submit(api, other).status_code == 201
    mine = api.client.get("/v1/jobs", headers=bearer(key)).json()["data"]
    api.client.post(mine[0]["links"]["cancel"], headers=bearer(key))
    assert submit(api, key).status_code == 201  # an ended job makes room


def test_a_quota_in_audio_counts_what_waits(any_ledger: RunningApi) -> None:
    api = any_ledger
    one_s = len(LONG) / engine_info().chars_per_audio_s
    key = make_key(api, quota=Quota(audio_s=one_s * 2.5))
    assert [submit(api, key, text=LONG).status_code for _ in range(3)] == [201, 201, 429]
    assert submit(api, key, text="Short.").status_code == 201
    too_large = submit(api, key, text=LONG * 3)
    assert refused(too_large) == (403, "larger-than-quota")
    assert "retry-after" not in too_large.headers
    quoted = quote(api, key, text=LONG * 3)
    assert (quoted.status_code, quoted.content) == (403, too_large.content)
    over = submit(api, key, text=LONG)
    assert quote(api, key, text=LONG).json()["admissible"] == {
        "ok": False,
        "code": "over-quota",
        "detail": over.json()["detail"],
        "retry_after_s": int(over.headers["retry-after"]),
    }
    assert quote(api, key).json()["admissible"] == ADMISSIBLE


def test_a_job_too_large_for_its_quota_is_told_so_by_a_full_farm_too(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        slow_farm(api)
        key = make_key(api, quota=Quota(audio_s=100.0))
        time.sleep(FRESH_S + 0.1)
        assert submit(api, key, text=LONG).status_code == 201
        assert refused(submit(api, key, text=LONG)) == (503, "farm-full")
        for answer in (submit(api, key, text=LONG * 2), quote(api, key, text=LONG * 2)):
            assert refused(answer) == (403, "larger-than-quota")


def test_a_repeated_submit_is_answered_although_the_quota_is_used_up(api: RunningApi) -> None:
    key = make_key(api, quota=Quota(jobs=1))
    headers = bearer(key) | {"Idempotency-Key": "k"}

    def send(_: int) -> httpx.Response:
        return api.client.post("/v1/jobs", json={"text": "Hello."}, headers=headers)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(16)))
    assert sorted(answer.status_code for answer in answers) == [200] * 15 + [201]
    assert refused(submit(api, key)) == (429, "over-quota")


def slow_farm(api: RunningApi) -> None:
    """Have it rendered ten seconds of audio, one every ten seconds, with its slots full."""
    database = api.farm.database
    story.planned_job(database, per_part=10)
    story.speak(database)
    api.publish(engine_info(), engine_info("tone", testing=True))  # as nodes do every few seconds

    def slow_down(conn: Connection) -> None:
        c = t.segment.c
        ended_at = read_clock(conn) - 10.0 * (10 - c.index)
        conn.execute(t.segment.update().values(claimed_at=ended_at - 400.0, done_at=ended_at))

    database.transact(slow_down)


def test_after_quiet_times_a_farm_takes_what_full_batches_can_do(any_ledger: RunningApi) -> None:
    """given single sentences, 0.4 s each / when 12 jobs of 20 come at once / then all are taken."""
    api = any_ledger
    story.planned_job(api.farm.database, per_part=12)
    story.speak(api.farm.database)

    def as_they_were(conn: Connection) -> None:
        c = t.segment.c
        ended_at = read_clock(conn) - 20.0 * (12 - c.index)
        conn.execute(
            t.segment.update().values(
                claimed_at=ended_at - 0.4, done_at=ended_at, samples=3.7 * c.rate_hz
            )
        )

    api.farm.database.transact(as_they_were)
    api.publish(engine_info())  # as nodes do every few seconds
    assert [api.submit(text=LONG, tier="rush").status_code for _ in range(12)] == [201] * 12
    found = api.client.get("/v1/tiers").json()
    assert found["rate_is_bound"]
    assert found["rate_audio_s_per_s"] == pytest.approx(1.5 * (8 + 8) * 3.7 / 0.4, rel=0.01)
    [rush] = [tier for tier in found["tiers"] if tier["tier"] == "rush"]
    assert 0 < rush["predicted_wait_s"] < 10


def test_a_full_farm_says_when_to_come_again_and_takes_bulk_meanwhile(tmp_path: Path) -> None:
    with an_api(tmp_path) as api:
        slow_farm(api)  # a tenth of a second of audio a second
        answers = [api.submit(text=LONG) for _ in range(2)]  # each has 75 s of audio
        assert [answer.status_code for answer in answers] == [201, 503]
        assert refused(answers[1]) == (503, "farm-full")
        problem = answers[1].json()
        assert problem["predicted_wait_s"] > problem["promise_s"] == 120.0
        wait_s = int(answers[1].headers["retry-after"])
        assert 500 < wait_s < 1_000
        quoted = quote(api, text=LONG)
        assert quoted.status_code == 200
        told = quoted.json()["admissible"]
        assert (told["ok"], told["code"]) == (False, "farm-full")
        assert told["retry_after_s"] == pytest.approx(wait_s, abs=60)
        assert quote(api, text=LONG, tier="bulk").json()["admissible"] == ADMISSIBLE
        rows = api.rows()
        assert api.rows() == rows
        assert api.submit(text=LONG, tier="bulk").status_code == 201
        assert api.submit(tier="rush").status_code == 201  # it has slots of its own
    with an_api(tmp_path, refuse_when_full=False) as api:
        assert api.submit(text=LONG).status_code == 201


def test_bulk_is_taken_to_its_depth(tmp_path: Path) -> None:
    with an_api(tmp_path, bulk_backlog_audio_s=160.0) as api:
        answers = [api.submit(text=LONG, tier="bulk") for _ in range(3)]
        assert [answer.status_code for answer in answers] == [201, 201, 503]
        assert refused(answers[2]) == (503, "farm-full")
        assert api.submit(text=LONG).status_code == 201


def test_an_unmeasured_farm_refuses_no_promise(api: RunningApi) -> None:
    assert [api.submit(text=LONG * 50).status_code for _ in range(5)] == [201] * 5


def test_requests_are_counted_by_tenant_and_answers_say_how_many_may_follow(
    tmp_path: Path,
) -> None:
    with an_api(tmp_path, requests_per_s=5) as api:
        news, books = make_key(api, "news"), make_key(api, "books")
        answers = [api.client.get("/v1/jobs", headers=bearer(news)) for _ in range(8)]
        assert [answer.status_code for answer in answers] == [200] * 5 + [429] * 3
        for answer, left in zip(answers, [4, 3, 2, 1, 0, 0, 0, 0], strict=True):
            assert answer.headers["ratelimit-policy"] == '"tenant";q=5;w=1'
            told = re.fullmatch(r'"tenant";r=(\d+);t=(\d+)', answer.headers["ratelimit"])
            assert told is not None
            assert (int(told[1]), int(told[2])) == (left, 1)
        assert refused(answers[-1]) == (429, "rate-limited")
        assert answers[-1].headers["retry-after"] == "1"
        assert api.client.get("/v1/jobs", headers=bearer(books)).status_code == 200
        for path in ("/livez", "/metrics"):
            answers = [api.client.get(path) for _ in range(9)]
            assert {answer.status_code for answer in answers} == {200}
            assert "ratelimit" not in answers[0].headers
        time.sleep(1.05)
        after = api.client.get("/v1/jobs", headers=bearer(news))
        assert (after.status_code, after.headers["ratelimit"]) == (200, '"tenant";r=4;t=1')
        refusal = api.client.get("/v1/jobs/nonsense", headers=bearer(news))
        assert (refusal.status_code, refusal.headers["ratelimit"]) == (404, '"tenant";r=3;t=1')


def test_strangers_share_one_count_that_takes_from_no_tenant(tmp_path: Path) -> None:
    with an_api(tmp_path, requests_per_s=3) as api:
        key = make_key(api)
        statuses = [
            api.client.get("/v1/jobs", headers=bearer(new_key())).status_code for _ in range(5)
        ]
        assert statuses == [401] * 3 + [429] * 2
        assert api.client.get("/v1/jobs", headers=bearer(key)).status_code == 200


def test_no_limit_tells_none(tmp_path: Path) -> None:
    with an_api(tmp_path, requests_per_s=0) as api:
        answer = api.client.get("/v1/jobs")
        assert (answer.status_code, "ratelimit" in answer.headers) == (200, False)


@pytest.mark.parametrize("size_bytes", [0, 1_000, 8_000_000])
def test_a_refusal_reaches_a_client_that_is_still_sending(api: RunningApi, size_bytes: int) -> None:
    for _ in range(3):
        answer = api.client.post("/v1/jobs", content=b" " * size_bytes, headers=bearer(new_key()))
        assert refused(answer) == (401, "unauthorized")
    assert api.client.get("/v1/jobs", headers=bearer(LOCAL_KEY)).status_code == 200


def test_a_key_is_served_whatever_name_it_asks_by(api: RunningApi) -> None:
    key = make_key(api)
    proxied = {"Host": "farm.example", "Origin": "https://farm.example"}
    answer = api.client.get("/v1/jobs", headers=bearer(key) | proxied)
    assert answer.status_code == 200
    assert api.client.get("/metrics", headers=bearer("x") | proxied).status_code == 421


def test_an_open_address_is_served_once_there_are_keys(tmp_path: Path) -> None:
    settings = without_servers(tmp_path, api_host="0.0.0.0")  # noqa: S104 - that is the point
    with farm_of(settings) as farm:
        with pytest.raises(SetupError, match="voxfarm keys create"):
            create_app(farm)
        migrate(farm.database)
        with pytest.raises(SetupError, match="voxfarm keys create"):
            create_app(farm)
        key = new_key()
        farm.database.transact(
            lambda conn: keys.create(conn, key.id, key.sha256, tenant="a", quota=NO_QUOTA)
        )
    with running_api(settings) as api:
        assert refused(api.client.get("/v1/jobs")) == (401, "unauthorized")
        foreign = bearer(key) | {"Host": "farm.example"}
        assert api.client.get("/v1/jobs", headers=foreign).status_code == 200
