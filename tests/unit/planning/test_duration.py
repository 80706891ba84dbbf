"""The expected length of a plan's audio."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.planning import Part, Plan, expected, is_any_speakable, plan_text
from shared.segments import SegmentKind
from tests.factories import job_spec

Planner = Callable[..., Plan]


def ten_a_second(text: str) -> float:
    return len(text) / 10


def test_spoken_characters_go_by_pace_and_speed_and_pauses_do_not(plan: Planner) -> None:
    made = plan("Twenty characters it. And twenty more then.\n\nEnd.")
    pauses_s = 0.3 + 0.7 + 1.5
    at_pace = expected(made, speech_s=ten_a_second, speed=1.0)
    assert at_pace.chars == 21 + 21 + 4
    assert at_pace.audio_s == pytest.approx(4.6 + pauses_s + 0.1)
    fast = expected(made, speech_s=ten_a_second, speed=2.0)
    assert fast.audio_s == pytest.approx(2.3 + pauses_s + 0.1)


def test_what_is_skipped_is_counted_and_takes_no_time(plan: Planner) -> None:
    made = expected(plan("I like it ☕. 你好。"), speech_s=ten_a_second, speed=1.0)
    assert (made.segments, made.skipped, made.chars) == (1, 2, len("I like it."))


def test_every_part_begins_with_a_little_silence() -> None:
    parts = [Part(0, "", 0, 5), Part(1, "", 5, 9)]
    made = plan_text("One. Two.", parts=parts, spec=job_spec())
    assert expected(made, speech_s=ten_a_second, speed=1).audio_s == pytest.approx(0.8 + 3.0 + 0.2)


@given(st.text(alphabet="aé 9 你好а☕.,!\n", max_size=40), st.sampled_from(["en", "zh", "ru"]))
def test_a_text_of_which_anything_can_be_said_has_a_spoken_piece(text: str, language: str) -> None:
    spec = job_spec(languages=(language,), language=language, on_unspeakable="skip")
    made = plan_text(text, parts=None, spec=spec)
    spoken = any(piece.kind is SegmentKind.SPEECH for piece in made.pieces)
    assert spoken == is_any_speakable(text, (language,))
