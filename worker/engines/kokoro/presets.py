"""Kokoro's preset voices of the languages it is given here: a table, and how it is listed."""

from shared.voices import VoiceInfo

LICENCE = "Apache-2.0"
# The numbers are those under which other programs list the model's voices, in alphabetical order.
_NUMBERS = {
    "zf_xiaoxiao": 47,
    "zf_xiaobei": 45,
    "zf_xiaoni": 46,
    "zf_xiaoyi": 48,
    "zm_yunjian": 49,
    "zm_yunxi": 50,
    "zm_yunxia": 51,
    "zm_yunyang": 52,
    "af_heart": 3,
    "af_alloy": 0,
    "af_aoede": 1,
    "af_bella": 2,
    "af_jessica": 4,
    "af_kore": 5,
    "af_nicole": 6,
    "af_nova": 7,
    "af_river": 8,
    "af_sarah": 9,
    "af_sky": 10,
    "am_adam": 11,
    "am_echo": 12,
    "am_eric": 13,
    "am_fenrir": 14,
    "am_liam": 15,
    "am_michael": 16,
    "am_onyx": 17,
    "am_puck": 18,
    "am_santa": 19,
    "bf_alice": 20,
    "bf_emma": 21,
    "bf_isabella": 22,
    "bf_lily": 23,
    "bm_daniel": 24,
    "bm_fable": 25,
    "bm_george": 26,
    "bm_lewis": 27,
}
_LANGUAGES = {"z": "zh", "a": "en", "b": "en"}
_GENDERS = {"f": "female", "m": "male"}


def presets() -> tuple[VoiceInfo, ...]:
    """Every voice, the default first. `bf_` and `bm_` are voices of British speakers."""
    return tuple(_preset(id_, number) for id_, number in _NUMBERS.items())


def _preset(id_: str, number: int) -> VoiceInfo:
    kind, _, name = id_.partition("_")
    return VoiceInfo(
        id=id_,
        language=_LANGUAGES[kind[0]],
        name=name.title(),
        gender=_GENDERS[kind[1]],
        licence=LICENCE,
        aliases=(str(number),),
    )
