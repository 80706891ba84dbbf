"""Content keys and seeds: the identity of a rendering. Pure.

A content key is an HMAC under the tenant's secret, so that equal text of two tenants gives
unrelated keys; a seed is a PRF of key and take, so a retry after a crash gives the same audio.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping

from shared.jobs import JobSpec


def content_key(secret: bytes, shaping: Mapping[str, object]) -> str:
    """64 hex digits over everything that shapes the sound, in canonical JSON."""
    canonical = json.dumps(shaping, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hmac.new(secret, canonical.encode(), hashlib.sha256).hexdigest()


def segment_key(secret: bytes, spec: JobSpec, text: str) -> str:
    """The identity of a piece's sound under a job's settings: all that shapes it, and no more."""
    return content_key(
        secret,
        {
            "engine": spec.engine,
            "version": spec.engine_version,
            "backend": spec.engine_backend,
            "rate_hz": spec.engine_rate_hz,
            "voice": spec.voice,
            "language": spec.language,
            "speed": spec.speed,
            "seed": spec.seed,
            "text": text,
        },
    )


def fallback_key(key: str, shaping: Mapping[str, object]) -> str:
    """The key of the same content when another engine, described by `shaping`, speaks it."""
    return content_key(key.encode(), shaping)


def seed_for(key: str, take: int) -> int:
    """63-bit seed of one take of one content key."""
    digest = hashlib.sha256(f"voxfarm-seed\0{key}\0{take}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
