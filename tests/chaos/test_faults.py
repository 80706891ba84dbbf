"""Sentences and messages that go wrong, on the same real farm."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import soundfile

from shared.broker import ANSWER_S
from tests.chaos.farm import SENTENCES, ChaosFarm
from worker.engines.tone import utterance_hash
from worker.engines.tone_code import decode

pytestmark = [pytest.mark.chaos, pytest.mark.xdist_group("chaos 1")]


def heard(pcm: np.ndarray) -> list[str]:
    return [mark.hash_hex for mark in decode(pcm.astype(np.float32) / 32_768, 24_000)]


@pytest.mark.parametrize("fault", ["[[crash]]", "[[fail]]", "[[hang]]"])
def test_a_poison_sentence_becomes_a_named_gap_and_costs_no_neighbour(
    farm: ChaosFarm, fault: str
) -> None:
    good = SENTENCES[0]
    text = "\n\n".join([*good[:10], f"Poison {fault} here.", *good[10:]])
    job_id = farm.submit(chapters=[{"title": "", "text": text}])
    job = farm.end_of(job_id)
    assert job["state"] == "partial", job
    assert job["progress"]["segments_quarantined"] == 1  # type: ignore[index]
    [pcm] = farm.audio(job_id)
    assert heard(pcm) == [utterance_hash(sentence, "a", 1.0) for sentence in good]
    [gap] = farm.manifest(job_id)["gaps"]  # type: ignore[misc]
    assert fault in text[gap["start"] : gap["end"]]
    assert gap["reason"]


def test_a_retry_renders_only_what_is_missing_and_keeps_the_files_without_a_gap(
    farm: ChaosFarm,
) -> None:
    sick = "Rarely [[sick]] here."
    texts = [SENTENCES[0], [*SENTENCES[1][:9], sick, *SENTENCES[1][9:]]]
    chapters = [{"title": f"C{n}", "text": "\n\n".join(text)} for n, text in enumerate(texts)]
    farm.sick_file.touch()
    try:
        job_id = farm.submit(chapters=chapters)
        assert farm.end_of(job_id)["state"] == "partial"
    finally:
        farm.sick_file.unlink()
    before = {f["name"]: f["sha256"] for f in farm.files(job_id) if f["kind"] == "audio"}
    tokens = {s["index"]: s["attempts"] for s in farm.manifest(job_id)["segments"]}  # type: ignore[attr-defined]

    farm.post(f"/v1/jobs/{job_id}/retry")
    farm.post(f"/v1/jobs/{job_id}/retry")  # sent twice, as a client would that heard no answer
    whole = farm.finish(job_id)

    for text, pcm in zip(texts, whole, strict=True):
        assert heard(pcm) == [utterance_hash(sentence, "a", 1.0) for sentence in text]
    after = {f["name"]: f["sha256"] for f in farm.files(job_id) if f["kind"] == "audio"}
    changed = [name for name in after if after[name] != before[name]]
    assert (len(after), len(changed)) == (2, 1)
    manifest = farm.manifest(job_id)
    assert manifest["gaps"] == []
    again = [s["index"] for s in manifest["segments"] if s["attempts"] > tokens[s["index"]]]  # type: ignore[attr-defined]
    assert again == [len(SENTENCES[0]) + 9]
    assert farm.job_post(f"/v1/jobs/{job_id}/retry").json()["code"] == "not-retryable"


def test_a_job_that_wants_no_gap_fails_at_once_and_a_retry_finishes_it(farm: ChaosFarm) -> None:
    text = [*SENTENCES[0][:3], "Rarely [[sick]] here.", *SENTENCES[0][3:]]
    farm.sick_file.touch()
    try:
        job_id = farm.submit(chapters=[{"title": "", "text": "\n\n".join(text)}], on_error="fail")
        job = farm.end_of(job_id)
    finally:
        farm.sick_file.unlink()
    assert (job["state"], job["error"]["code"]) == ("failed", "segment-failed")  # type: ignore[index]
    farm.post(f"/v1/jobs/{job_id}/retry")
    [pcm] = farm.finish(job_id)
    assert heard(pcm) == [utterance_hash(sentence, "a", 1.0) for sentence in text]


def test_a_cancelled_job_stops_and_leaves_the_farm_to_others(farm: ChaosFarm) -> None:
    cancelled = farm.submit()
    farm.wait_for_fraction(cancelled, 0.1)
    farm.post(f"/v1/jobs/{cancelled}/cancel")
    farm.check(farm.finish(farm.submit()))
    assert farm.end_of(cancelled)["state"] == "cancelled"


def test_what_a_cancelled_job_had_finished_can_be_downloaded(
    farm: ChaosFarm, tmp_path: Path
) -> None:
    chapters = [
        {"title": "Short", "text": "\n\n".join(SENTENCES[0][:3])},
        {"title": "Long", "text": "\n\n".join(s for text in SENTENCES for s in text)},
    ]
    job_id = farm.submit(chapters=chapters)
    while not farm.files(job_id):
        time.sleep(0.05)
    farm.post(f"/v1/jobs/{job_id}/cancel")
    assert farm.end_of(job_id)["state"] == "cancelled"
    argv = ["jobs", "download", job_id, "--data", str(farm.data_dir), "--out", str(tmp_path)]
    subprocess.run([sys.executable, "-P", "-m", "cli", *argv, "--quiet"], check=True)
    [file] = tmp_path.rglob("*.flac")
    pcm, _ = soundfile.read(file, dtype="int16")
    assert heard(pcm) == [utterance_hash(sentence, "a", 1.0) for sentence in SENTENCES[0][:3]]


def test_many_jobs_at_once_keep_their_sentences_apart(farm: ChaosFarm) -> None:
    ids = [farm.submit(tier=tier) for tier in ("rush", "standard", "bulk", "standard")]
    for job_id in ids:
        farm.check(farm.finish(job_id))


def test_workers_go_on_after_a_redis_that_stood_still(farm: ChaosFarm) -> None:
    job_id = farm.submit()
    for fraction in (0.1, 0.5):
        farm.wait_for_fraction(job_id, fraction)
        [valkey] = farm.watched().processes("valkey")
        valkey.suspend()
        time.sleep(ANSWER_S + 2)  # acknowledgements fail
        valkey.resume()
    farm.check(farm.finish(job_id))
    farm.check(farm.finish(farm.submit()))
