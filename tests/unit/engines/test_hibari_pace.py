"""What hibari says of its pace holds on a page of text: quotes are made from it."""

import pytest

from benchmarks.planned import SAMPLE, spec_for
from shared.planning import expected, plan_text
from tests.hosts import utterance
from worker.assembly.stitch import Clip, Stitcher
from worker.engines.hibari import build


def test_the_expected_length_is_within_a_tenth_of_what_is_delivered() -> None:
    engine, spec = build(), spec_for("hibari")
    plan = plan_text(SAMPLE.read_text(), parts=None, spec=spec)

    def clips() -> list[Clip]:
        made = []
        for index, piece in enumerate(plan.pieces):
            engine.admit([utterance(piece.text, voice=spec.voice)])
            made.append(Clip(index, engine.step()[0].samples, piece.pause_after_s))
        return made

    rate_hz = spec.engine_rate_hz
    stitcher = Stitcher(in_rate_hz=rate_hz, out_rate_hz=rate_hz)
    delivered_s = sum(len(block) for block in stitcher.blocks(clips())) / rate_hz
    quoted = expected(plan, speech_s=engine.info.speech_s, speed=1.0)
    assert quoted.audio_s == pytest.approx(delivered_s, rel=0.1)
