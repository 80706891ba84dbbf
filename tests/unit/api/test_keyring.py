"""Who a key belongs to: one comparison whatever is presented, and a copy that is soon renewed."""

import asyncio
import hmac
from dataclasses import dataclass, field

import pytest

from api.auth import ANYBODY, Caller
from api.keyring import FRESH_S, LOCAL_KEY_ID, Keyring, Keys, UnauthorizedError
from shared.api_keys import NewKey, key_id_of, new_key
from shared.errors import LedgerBusyError
from shared.ledger.keys import KeyRecord
from shared.tenants import DEFAULT_TENANT, Quota
from shared.tiers import Tier


@dataclass
class Desk:
    """A keyring over keys that a test hands out and takes back."""

    keys: dict[str, KeyRecord] = field(default_factory=dict)
    ever: bool = False
    now_s: float = 0.0
    loads: int = 0
    away: bool = False
    compared: list[tuple[str, str]] = field(default_factory=list)

    def ring(self, *, anybody: bool = True, local_key: str = "") -> Keyring:
        return Keyring(
            self.load,
            anybody=anybody,
            local_key=local_key,
            clock=lambda: self.now_s,
            sleep=self.sleep,
            same=self.same,
        )

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        await asyncio.sleep(0)

    def load(self) -> Keys:
        self.loads += 1
        if self.away:
            raise LedgerBusyError("away")
        return Keys(tuple(self.keys.values()), self.ever)

    def same(self, one: str, other: str) -> bool:
        self.compared.append((one, other))
        return hmac.compare_digest(one, other)

    def hand_out(self, tenant: str = "news") -> NewKey:
        key = new_key()
        self.keys[key.id] = KeyRecord(
            key.id, tenant, "", key.sha256, frozenset({Tier.BULK}), Quota(jobs=3), 0.0, None
        )
        self.ever = True
        return key


def bearer(key: NewKey) -> str:
    return f"Bearer {key.text}"


def test_while_there_was_never_a_key_anybody_is_the_default_tenant() -> None:
    assert asyncio.run(Desk().ring().caller(None)) == ANYBODY
    assert ANYBODY.tenant == DEFAULT_TENANT
    with pytest.raises(UnauthorizedError) as caught:
        asyncio.run(Desk().ring(anybody=False).caller(None))
    assert not caught.value.presented


def test_the_first_key_closes_the_door_and_revoking_it_opens_it_to_nobody() -> None:
    async def story() -> None:
        desk = Desk()
        ring = desk.ring()
        assert await ring.caller(None) == ANYBODY
        assert await ring.still_counts(ANYBODY)
        key = desk.hand_out()
        expected = Caller("news", frozenset({Tier.BULK}), Quota(jobs=3), key.id)
        desk.now_s += FRESH_S + 0.01
        assert await ring.caller(bearer(key)) == expected
        with pytest.raises(UnauthorizedError):
            await ring.caller(None)
        assert not await ring.still_counts(ANYBODY)
        assert await ring.still_counts(expected)
        desk.keys.clear()
        desk.now_s += FRESH_S + 0.01
        for presented in (bearer(key), None):
            with pytest.raises(UnauthorizedError):
                await ring.caller(presented)
        assert not await ring.still_counts(expected)

    asyncio.run(story())


def test_a_new_key_is_found_although_the_copy_is_fresh() -> None:
    async def story() -> None:
        desk = Desk(ever=True)
        ring = desk.ring()
        with pytest.raises(UnauthorizedError):
            await ring.caller(None)
        key = desk.hand_out()
        desk.now_s += 0.001
        assert (await ring.caller(bearer(key))).key_id == key.id

    asyncio.run(story())


@pytest.mark.parametrize("kind", ["right", "wrong secret", "unknown", "no key at all", "empty id"])
def test_every_key_costs_one_comparison_of_equal_lengths(kind: str) -> None:
    desk = Desk()
    key = desk.hand_out()
    shown = {
        "right": key.text,
        "wrong secret": f"{key.text[:-43]}{new_key().text[-43:]}",
        "unknown": new_key().text,
        "no key at all": "tr\u00f6tt",
        "empty id": "vxf__" + "x" * 43,
    }[kind]
    ring = desk.ring()
    if kind == "right":
        assert asyncio.run(ring.caller(f"bearer  {shown}")).tenant == "news"
    else:
        with pytest.raises(UnauthorizedError) as caught:
            asyncio.run(ring.caller(f"Bearer {shown}"))
        assert caught.value.presented
        assert shown not in str(caught.value)
    [(one, other)] = desk.compared
    assert len(one) == len(other) == 64


@pytest.mark.parametrize("header", ["", "Basic dXNlcjpwdw==", "Bearer", "Bearer ", "vxf_x"])
def test_only_bearer_is_understood(header: str) -> None:
    with pytest.raises(UnauthorizedError):
        asyncio.run(Desk().ring().caller(header))


def test_the_local_key_needs_no_ledger_and_no_other_passes_for_it() -> None:
    local, other = new_key(), new_key()
    desk = Desk(away=True)
    ring = desk.ring(local_key=local.text)
    caller = asyncio.run(ring.caller(bearer(local)))
    assert (caller.tenant, caller.key_id) == (DEFAULT_TENANT, LOCAL_KEY_ID)
    assert asyncio.run(ring.still_counts(caller))
    assert desk.loads == 0
    desk.away = False
    with pytest.raises(UnauthorizedError):
        asyncio.run(ring.caller(bearer(other)))


def test_a_flood_of_wrong_keys_is_no_flood_on_the_ledger() -> None:
    async def story() -> None:
        desk = Desk(ever=True)
        ring = desk.ring()
        for _ in range(10):
            desk.now_s += 0.001
            flood = [ring.caller(bearer(new_key())) for _ in range(100)]
            told = await asyncio.gather(*flood, return_exceptions=True)
            assert {type(one) for one in told} == {UnauthorizedError}
        assert desk.loads <= 25

    asyncio.run(story())


def test_with_the_ledger_away_one_asks_and_the_others_are_told() -> None:
    async def story() -> None:
        desk = Desk(away=True)
        ring = desk.ring()
        asked = [ring.caller(None) for _ in range(20)]
        told = await asyncio.gather(*asked, return_exceptions=True)
        assert {type(one) for one in told} == {LedgerBusyError}
        assert desk.loads == 1
        desk.away, desk.now_s = False, 2.0
        assert await ring.caller(None) == ANYBODY

    asyncio.run(story())


def test_a_key_names_its_id_and_tells_nothing_in_a_log() -> None:
    key = new_key()
    assert key_id_of(key.text) == key.id
    assert len(key.text) == 74
    assert key.text not in repr(key)
    assert len({new_key().text for _ in range(100)}) == 100
