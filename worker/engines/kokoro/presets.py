"""Kokoro's preset voices of the languages it is given here: a table, and how it is listed."""

from shared.voices import VoiceInfo

LICENCE = "Apache-2.0"
# The number under which other programs list the voice, in alphabetical order; and how fast it reads
# beside the engine's own pace, measured over a paragraph of its language, as delivered, without
# pauses.
_NUMBER_AND_PACE = {
    "zf_xiaoxiao": (47, 0.95),
    "zf_xiaobei": (45, 0.79),
    "zf_xiaoni": (46, 0.94),
    "zf_xiaoyi": (48, 0.97),
    "zm_yunjian": (49, 0.93),
    "zm_yunxi": (50, 1.02),
    "zm_yunxia": (51, 0.92),
    "zm_yunyang": (52, 1.01),
    "af_heart": (3, 1.01),
    "af_alloy": (0, 0.98),
    "af_aoede": (1, 1.04),
    "af_bella": (2, 0.98),
    "af_jessica": (4, 1.1),
    "af_kore": (5, 0.96),
    "af_nicole": (6, 0.65),
    "af_nova": (7, 1.05),
    "af_river": (8, 1.11),
    "af_sarah": (9, 1.03),
    "af_sky": (10, 1.0),
    "am_adam": (11, 1.05),
    "am_echo": (12, 1.01),
    "am_eric": (13, 1.12),
    "am_fenrir": (14, 1.02),
    "am_liam": (15, 1.09),
    "am_michael": (16, 0.91),
    "am_onyx": (17, 0.96),
    "am_puck": (18, 1.0),
    "am_santa": (19, 0.92),
    "bf_alice": (20, 0.98),
    "bf_emma": (21, 1.07),
    "bf_isabella": (22, 1.03),
    "bf_lily": (23, 0.98),
    "bm_daniel": (24, 1.05),
    "bm_fable": (25, 0.96),
    "bm_george": (26, 0.87),
    "bm_lewis": (27, 0.93),
}
_LANGUAGES = {"z": "zh", "a": "en", "b": "en"}
_GENDERS = {"f": "female", "m": "male"}


def presets() -> tuple[VoiceInfo, ...]:
    """Every voice, the default first. `bf_` and `bm_` are voices of British speakers."""
    return tuple(_preset(id_, *row) for id_, row in _NUMBER_AND_PACE.items())


def _preset(id_: str, number: int, pace: float) -> VoiceInfo:
    kind, _, name = id_.partition("_")
    return VoiceInfo(
        id=id_,
        language=_LANGUAGES[kind[0]],
        name=name.title(),
        gender=_GENDERS[kind[1]],
        licence=LICENCE,
        aliases=(str(number),),
        pace=pace,
    )
