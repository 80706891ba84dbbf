"""Whether Kokoro's voices say what they are given, in both languages, each in its own place.

Several jobs, each in a voice of its own, go through one embedded farm at once: the Chinese and the
English sample in two voices each, and 40 sentences of both languages. whisper-base hears the
delivered files, DNSMOS judges them, and every stored segment of every job must be, bit for bit,
what its voice says when the sentence is spoken again alone. What a quote said of each job's length
is held against what was delivered.

A sentence of both languages counts when all its English words and Chinese runs are heard. The
recogniser is told all the words of all the sentences, no sentence's own; it hears each file as
Chinese and as English, since it writes down one language at a time. How easily it imagines words
that it was told of is measured on the same sentences without them.

Run: python -m benchmarks.quality_kokoro --json - [--folder FOLDER]
"""
# ruff: noqa: RUF001 - full-width marks are part of Chinese text

import hashlib
import json
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import httpx
import numpy as np
import soundfile
from faster_whisper import WhisperModel

from benchmarks.farm import ENDED
from benchmarks.farm_process import Watched, running_farm
from benchmarks.hearing_chinese import hold_chinese, missing_runs, missing_words
from benchmarks.judges import dnsmos, hold_against, transcribe, whisper_base
from benchmarks.report import Bar, at_least, at_most, emit, parser
from worker.assembly.segment_audio import encode_segment
from worker.engines.base import Engine, Utterance
from worker.engines.registry import build

SAMPLES = Path(__file__).parents[1] / "samples"
MIXED = Path(__file__).parent / "texts" / "mixed-40.txt"
CHINESE_VOICES = ("zf_xiaoxiao", "zm_yunxi")
ENGLISH_VOICES = ("af_heart", "am_michael")
MIXED_VOICE = "zf_xiaoxiao:0.5+af_heart:0.5"
SIMPLIFIED = "以下是普通话的句子，使用简体字。"
_CLOCK = re.compile(r"(?<!\d)(\d{1,2}):(\d\d)(?!\d)")
_PENCE = re.compile(r"£(\d+) and (\d\d) pence")
_ENGLISH = re.compile(r"[A-Za-z]+(?: [A-Za-z]+)*")


@dataclass(frozen=True)
class Texts:
    """What is spoken; `mixed` sentence by sentence."""

    chinese: str
    english: str
    mixed: list[str]

    @classmethod
    def read(cls, share: float) -> Self:
        """The samples, or the first paragraphs and sentences of them."""
        chinese, english, mixed = (
            [line for line in path.read_text().splitlines() if line]
            for path in (SAMPLES / "chinese.txt", SAMPLES / "english.txt", MIXED)
        )
        cut = [lines[: round(len(lines) * share)] for lines in (chinese, english, mixed)]
        return cls("\n\n".join(cut[0]), "\n\n".join(cut[1]), cut[2])


@dataclass(frozen=True)
class Rendered:
    """A job's audio files, in the order of its parts, and how long a quote said they would be."""

    voice: str
    job_id: str
    files: tuple[Path, ...]
    quoted_s: float


def main() -> None:
    """Render, listen, speak again, report."""
    options = parser(__doc__)
    options.add_argument("--folder", help="the engine's files; default: where they are installed")
    options.add_argument("--nodes", type=int, default=1)
    options.add_argument("--quick", action="store_true", help="a third of each text")
    args = options.parse_args()
    chosen = {"folder": args.folder} if args.folder else {}
    texts = Texts.read(share=1 / 3 if args.quick else 1.0)
    environment = {"VOXFARM_ENGINE_OPTIONS": json.dumps({"kokoro": chosen})}
    with (
        tempfile.TemporaryDirectory(prefix="voxfarm-quality-") as scratch,
        running_farm(engine="kokoro", nodes=args.nodes, environment=environment) as farm,
    ):
        began_s = time.monotonic()
        rendered = render_all(farm, texts, Path(scratch))
        wall_s = time.monotonic() - began_s
        engine = build("kokoro", chosen)
        whisper = whisper_base()
        figures: dict[str, object] = {"render_wall_s": round(wall_s, 1)}
        bars: list[Bar] = []
        for result in (
            chinese(whisper, rendered, texts.chinese),
            english(whisper, rendered, texts.english),
            mixed(whisper, rendered["mixed"], texts.mixed, engine, Path(scratch)),
            voices_apart(farm, rendered, engine),
            quotes(rendered),
        ):
            figures |= result[0]
            bars += result[1]
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


def render_all(farm: Watched, texts: Texts, folder: Path) -> dict[str, Rendered]:
    """All jobs at once, so that their sentences are mixed in the farm's queue; then their files."""
    wishes: dict[str, dict[str, object]] = {
        **{voice: {"voice": voice, "text": texts.chinese} for voice in CHINESE_VOICES},
        **{voice: {"voice": voice, "text": texts.english} for voice in ENGLISH_VOICES},
        "mixed": {
            "voice": MIXED_VOICE,
            "language": "zh",
            "chapters": [{"title": "", "text": sentence} for sentence in texts.mixed],
        },
    }
    with httpx.Client(base_url=farm.url, timeout=60) as client:
        jobs, quoted_s = {}, {}
        for name, wish in wishes.items():
            body = {"engine": "kokoro", "format": "flac", "reuse": False} | wish
            quote = client.post("/v1/jobs/quote", json=body).raise_for_status().json()
            quoted_s[name] = float(quote["audio_s"])
            jobs[name] = client.post("/v1/jobs", json=body).raise_for_status().json()
        return {
            name: Rendered(
                job["voice"], job["id"], _fetch(client, job["id"], folder), quoted_s[name]
            )
            for name, job in jobs.items()
        }


def _fetch(client: httpx.Client, job_id: str, folder: Path) -> tuple[Path, ...]:
    while (job := client.get(f"/v1/jobs/{job_id}").json())["state"] not in ENDED:
        time.sleep(0.5)
    if job["state"] != "completed":
        raise RuntimeError(f"job ended as {job['state']}: {job['error']}")
    paths = []
    for file in client.get(f"/v1/jobs/{job_id}/deliverables").json()["files"]:
        if file["kind"] == "audio":
            path = folder / f"{job_id}-{file['part'] or 0:03d}.flac"
            path.write_bytes(httpx.get(file["url"]).raise_for_status().content)
            paths.append(path)
    return tuple(sorted(paths))


def chinese(
    whisper: WhisperModel, rendered: Mapping[str, Rendered], text: str
) -> tuple[dict[str, object], list[Bar]]:
    """Character error rates and opinion scores of the Chinese sample."""
    found, bars = {}, []
    for voice in CHINESE_VOICES:
        [path] = rendered[voice].files
        heard = transcribe(whisper, path, language="zh", prompt=SIMPLIFIED)
        hearing, mos = hold_chinese(text, heard), dnsmos(path)
        found[voice] = {
            "cer": round(hearing.cer, 4),
            "cer_by_sound": round(hearing.cer_by_sound, 4),
            "characters": hearing.characters,
            "dnsmos": round(mos, 3),
            "audio_s": round(soundfile.info(path).duration, 1),
            "heard": heard,
        }
        bars.append(at_most(f"cer by sound {voice}", hearing.cer_by_sound, 0.03))
        bars.append(at_least(f"dnsmos {voice}", mos, 3.1))
    return {"chinese": found}, bars


def english(
    whisper: WhisperModel, rendered: Mapping[str, Rendered], text: str
) -> tuple[dict[str, object], list[Bar]]:
    """Word error rates and opinion scores of the English sample."""
    spoken = [_alike(line) for line in text.splitlines() if line]
    found, bars = {}, []
    for voice in ENGLISH_VOICES:
        [path] = rendered[voice].files
        hearing, mos = hold_against(spoken, _alike(transcribe(whisper, path))), dnsmos(path)
        found[voice] = {
            "wer": round(hearing.wer, 4),
            "missing": list(hearing.missing_sentences),
            "words": hearing.words,
            "dnsmos": round(mos, 3),
            "audio_s": round(soundfile.info(path).duration, 1),
        }
        bars.append(at_most(f"wer {voice}", hearing.wer, 0.03))
        bars.append(at_most(f"missing {voice}", len(hearing.missing_sentences), 0))
        bars.append(at_least(f"dnsmos {voice}", mos, 3.2))
    return {"english": found}, bars


def _alike(text: str) -> str:
    """One spelling for figures that a recogniser may write in two: 4:17, £12 and 50 pence."""
    return _PENCE.sub(r"£\1.\2", _CLOCK.sub(r"\1.\2", text))


def mixed(
    whisper: WhisperModel, job: Rendered, sentences: list[str], engine: Engine, folder: Path
) -> tuple[dict[str, object], list[Bar]]:
    """How many sentences are heard whole, and how many words that are not there."""
    told = ", ".join(sorted({word for one in sentences for word in _ENGLISH.findall(one)}))
    prompt = f"以下是普通话的句子，其中有英文单词：{told}。"
    failed = {}
    imagined = []
    for sentence, path in zip(sentences, job.files, strict=True):
        as_chinese = transcribe(whisper, path, language="zh", prompt=prompt)
        as_english = transcribe(whisper, path, language="en", prompt=told)
        words = missing_words(sentence, as_chinese, as_english)
        runs = missing_runs(sentence, as_chinese)
        if words or runs:
            failed[sentence] = {"missing": words + runs, "heard": [as_chinese, as_english]}
    for sentence in sentences[::4]:
        bare = _ENGLISH.sub("", sentence)
        path = folder / "bare.flac"
        soundfile.write(path, speak(engine, bare, job.voice, "zh", 1.0), engine.info.sample_rate_hz)
        heard = (
            transcribe(whisper, path, language="zh", prompt=prompt),
            transcribe(whisper, path, language="en", prompt=told),
        )
        if not missing_words(sentence, *heard):
            imagined.append(sentence)
    share = 1 - len(failed) / len(sentences)
    figures = {
        "voice": job.voice,
        "sentences": len(sentences),
        "heard_whole": round(share, 4),
        "failed": failed,
        "imagined": imagined,
        "imagined_of": len(sentences[::4]),
    }
    bars = [
        at_least("mixed sentences heard whole", share, 0.95),
        at_most("words imagined", len(imagined), 1),
    ]
    return {"mixed": figures}, bars


def voices_apart(
    farm: Watched, rendered: Mapping[str, Rendered], engine: Engine
) -> tuple[dict[str, object], list[Bar]]:
    """Speak every segment again in the voice of its job, and compare with what was stored."""
    compared = wrong = 0
    for job in rendered.values():
        for text, language, speed, sha256 in _segments(farm, job.job_id):
            again = speak(engine, text, job.voice, language, speed)
            stored = encode_segment(again, engine.info.sample_rate_hz)
            compared += 1
            wrong += hashlib.sha256(stored).hexdigest() != sha256
    figures = {"segments": compared, "voices": len(rendered), "differing": wrong}
    bars = [
        at_most("segments in another voice", wrong, 0),
        at_least("segments compared", compared, 30),
    ]
    return {"voices_apart": figures}, bars


def quotes(rendered: Mapping[str, Rendered]) -> tuple[dict[str, object], list[Bar]]:
    """How far from its quote each job's audio is in length, as a share of what was delivered."""
    found, bars = {}, []
    for name, job in rendered.items():
        audio_s = sum(soundfile.info(path).duration for path in job.files)
        off = job.quoted_s / audio_s - 1
        found[name] = {
            "quoted_s": round(job.quoted_s, 1),
            "audio_s": round(audio_s, 1),
            "off": round(off, 4),
        }
        bars.append(at_most(f"quote off {name}", abs(off), 0.1))
    return {"quotes": found}, bars


def _segments(farm: Watched, job_id: str) -> Iterator[tuple[str, str, float, str]]:
    with sqlite3.connect(farm.data_dir / "voxfarm.db") as ledger:
        (spec_json,) = ledger.execute("SELECT spec FROM job WHERE id = ?", (job_id,)).fetchone()
        spec = json.loads(spec_json)
        for text, sha256 in ledger.execute(
            'SELECT text, sha256 FROM segment WHERE job_id = ? AND kind = "speech"', (job_id,)
        ):
            yield text, spec["language"], spec["speed"], sha256


def speak(engine: Engine, text: str, voice: str, language: str, speed: float) -> np.ndarray:
    """An utterance, spoken alone and whole."""
    engine.admit([Utterance("again", text, voice, language, speed, seed=0)])
    pieces = []
    while True:
        for chunk in engine.step():
            if chunk.error:
                raise RuntimeError(chunk.error)
            pieces.append(chunk.samples)
            if chunk.final:
                return np.concatenate(pieces)


if __name__ == "__main__":
    main()
