"""How much of the bare engine's speed is left through the whole farm.

The same text goes through (a) the bare engine in plain single-threaded processes on all cores and
(b) the whole embedded farm, FLAC and MP3 out; loading is excluded on both sides, the arms are
interleaved and repeated, and medians are compared. A simulated device, which sleeps and uses no
CPU, then shows how well the farm keeps a GPU-like device busy.

Run: python -m benchmarks.farm --json -
"""

import argparse
import sqlite3
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import httpx

from benchmarks.engine_bare import render_bare
from benchmarks.farm_process import Watched, running_farm
from benchmarks.report import Bar, emit
from shared.jobs import AudioFormat, JobSpec, NewlineMode, OnUnspeakable, Pauses
from shared.planning import plan_text
from shared.tiers import Tier
from worker.engines.registry import build

TEXT = Path(__file__).parent / "texts" / "journey-4-chapters.txt"
ENDED = {"completed", "partial", "failed", "cancelled"}
TARGETS = {"efficiency": 0.65, "efficiency_mp3": 0.55, "efficiency_device": 0.93}
DEVICE = {"base_s": 0.05, "per_item_s": 0.04}
DEVICE_BATCH = 8


def render(farm: Watched, body: Mapping[str, object]) -> dict[str, object]:
    """Submit a job and wait for its end; raises when it is not `completed`."""
    with httpx.Client(base_url=farm.url, timeout=60) as client:
        reply = client.post("/v1/jobs", json=dict(body))
        reply.raise_for_status()
        job_id = reply.json()["id"]
        started = time.monotonic()
        while True:
            job = client.get(f"/v1/jobs/{job_id}").json()
            if job["state"] in ENDED:
                break
            time.sleep(0.05)
        if job["state"] != "completed":
            raise RuntimeError(f"job ended as {job['state']}: {job['error']}")
        return {"id": job_id, "wall_s": time.monotonic() - started, **job["progress"]}


def measure_cpu_engine(runs: int, cores: int) -> dict[str, object]:
    """Bare engine against the farm with the CPU engine."""
    text = TEXT.read_text()
    sentences = [p.text for p in plan_text(text, parts=None, spec=_spec()).pieces if p.text]
    arms: dict[str, list[float]] = {"bare": [], "flac": [], "mp3": []}
    cpu: dict[str, dict[str, float]] = {}
    audio_s = 0.0
    with running_farm(engine="hibari", nodes=cores) as farm:
        render(farm, {"text": "One warm-up sentence.", "engine": "hibari", "format": "mp3"})
        for _ in range(runs):
            bare = render_bare("hibari", sentences, processes=cores)
            arms["bare"].append(bare.audio_s / bare.wall_s)
            for audio_format in ("flac", "mp3"):
                before = farm.cpu_s()
                body = {
                    "text": text,
                    "engine": "hibari",
                    "format": audio_format,
                    "split_chapters": True,
                }
                job = render(farm, body)
                after = farm.cpu_s()
                audio_s = float(str(job["audio_s"]))
                arms[audio_format].append(audio_s / float(str(job["wall_s"])))
                cpu[audio_format] = {
                    kind: round(after[kind] - before.get(kind, 0.0), 2) for kind in sorted(after)
                }
        rss = {kind: round(mb, 1) for kind, mb in sorted(farm.peak_rss_mb.items())}
    medians = {arm: statistics.median(values) for arm, values in arms.items()}
    return {
        "audio_s": round(audio_s, 1),
        "sentences": len(sentences),
        "engine_xrt": round(medians["bare"], 2),
        "farm_xrt": round(medians["flac"], 2),
        "farm_mp3_xrt": round(medians["mp3"], 2),
        "efficiency": round(medians["flac"] / medians["bare"], 3),
        "efficiency_mp3": round(medians["mp3"] / medians["bare"], 3),
        "runs_xrt": {arm: [round(v, 2) for v in values] for arm, values in arms.items()},
        "cpu_s_by_kind": cpu,
        "overhead_ms_cpu_per_sentence": {
            arm: round(
                1000 * sum(s for k, s in used.items() if k != "engine host") / len(sentences), 1
            )
            for arm, used in cpu.items()
        },
        "peak_rss_mb": rss,
    }


def measure_device(segments: int) -> dict[str, object]:
    """A simulated device behind the farm: share of the ideal from first claim to last commit."""
    text = "\n\n".join(f"Sentence number {n} of a long and even text." for n in range(segments))
    options = '{"simulated": {"base_s": 0.05, "per_item_s": 0.04}}'
    with running_farm(
        engine="simulated", nodes=1, environment={"VOXFARM_ENGINE_OPTIONS": options}
    ) as farm:
        job = render(farm, {"text": text, "engine": "simulated", "format": "flac", "tier": "bulk"})
        with sqlite3.connect(farm.data_dir / "voxfarm.db") as ledger:
            first, last, count = ledger.execute(
                "SELECT min(claimed_at), max(done_at), count(*) FROM segment"
                " WHERE job_id = ? AND kind = 'speech'",
                (job["id"],),
            ).fetchone()
    ideal_s = count / DEVICE_BATCH * (DEVICE["base_s"] + DEVICE["per_item_s"] * DEVICE_BATCH)
    return {
        "device_segments": count,
        "device_wall_s": round(last - first, 2),
        "device_ideal_s": round(ideal_s, 2),
        "efficiency_device": round(ideal_s / (last - first), 3),
    }


def _spec() -> JobSpec:
    """The settings the farm itself would freeze for this job, for the bare arm's sentences."""
    info = build("hibari", {}).info
    return JobSpec(
        engine=info.name,
        engine_version=info.version,
        engine_backend=info.backend,
        engine_rate_hz=info.sample_rate_hz,
        engine_max_chars=info.max_chars,
        engine_min_chars=info.min_chars,
        languages=info.languages,
        voice=info.default_voice,
        language="en",
        tier=Tier.STANDARD,
        format=AudioFormat.FLAC,
        sample_rate_hz=24_000,
        speed=1.0,
        seed=0,
        pauses=Pauses(),
        newlines=NewlineMode.PROSE,
        on_unspeakable=OnUnspeakable.REFUSE,
        split_chapters=True,
    )


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default="-", metavar="PATH", help="where to, - for stdout")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2, help="engine processes in both arms")
    parser.add_argument("--segments", type=int, default=1_000, help="for the simulated device")
    parser.add_argument("--only", choices=["engine", "device"])
    args = parser.parse_args()
    figures: dict[str, object] = {}
    if args.only != "device":
        figures |= measure_cpu_engine(args.runs, args.cores)
    if args.only != "engine":
        figures |= measure_device(args.segments)
    reached = {name: float(str(figures[name])) for name in TARGETS if name in figures}
    bars = [
        Bar(name=name, value=value, target=TARGETS[name], ok=value >= TARGETS[name])
        for name, value in reached.items()
    ]
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


if __name__ == "__main__":
    main()
