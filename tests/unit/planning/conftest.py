"""A valid job spec for planning tests, of which a test changes what its story is about."""

from collections.abc import Callable

import pytest

from shared.jobs import AudioFormat, JobSpec, NewlineMode, OnUnspeakable, Pauses
from shared.planning import Plan, plan_text
from shared.tiers import Tier

BASE = {
    "engine": "tone",
    "engine_version": "1",
    "engine_backend": "cpu",
    "engine_rate_hz": 24_000,
    "engine_max_chars": 300,
    "engine_min_chars": 1,
    "languages": ("en",),
    "voice": "v",
    "language": "en",
    "tier": Tier.STANDARD,
    "format": AudioFormat.FLAC,
    "sample_rate_hz": 24_000,
    "speed": 1.0,
    "seed": 0,
    "pauses": Pauses(),
    "newlines": NewlineMode.PROSE,
    "on_unspeakable": OnUnspeakable.SKIP,
    "split_chapters": False,
}


@pytest.fixture(scope="session")
def spec_with() -> Callable[..., JobSpec]:
    def build(**changes: object) -> JobSpec:
        return JobSpec.model_validate(BASE | changes)

    return build


@pytest.fixture(scope="session")
def plan(spec_with: Callable[..., JobSpec]) -> Callable[..., Plan]:
    def build(text: str, **changes: object) -> Plan:
        return plan_text(text, parts=None, spec=spec_with(**changes))

    return build


@pytest.fixture(scope="session")
def said(plan: Callable[..., Plan]) -> Callable[..., list[str]]:
    """What the engine is asked to say, piece by piece."""

    def build(text: str, **changes: object) -> list[str]:
        return [piece.text for piece in plan(text, **changes).pieces if piece.text]

    return build
