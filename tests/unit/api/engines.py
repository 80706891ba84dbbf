"""Engines as nodes would publish them; a test names only what it is about."""

from shared.voices import EngineInfo, VoiceInfo


def engine_info(name: str = "hibari", **changes: object) -> EngineInfo:
    defaults: dict[str, object] = {
        "name": name,
        "version": "1.2",
        "backend": "onnx",
        "licence": "Apache-2.0",
        "sample_rate_hz": 24_000,
        "voices": (
            VoiceInfo(id="heart", language="en", name="Heart", gender="female", licence="CC0"),
            VoiceInfo(id="oak", language="en"),
        ),
        "languages": ("en",),
        "slots": 8,
        "max_chars": 400,
        "min_chars": 2,
    }
    return EngineInfo.model_validate(defaults | changes)
