"""How much of the bare engine's speed is left through the whole farm.

The same text goes through (a) the bare engine in plain single-threaded processes on all cores and
(b) the whole embedded farm, FLAC and MP3 out; loading is excluded on both sides, the arms are
interleaved and repeated, and medians are compared. A simulated device, which sleeps and uses no
CPU, then shows how well the farm keeps a GPU-like device busy.

Run: python -m benchmarks.farm --json -
"""

import itertools
import sqlite3
import statistics
import sys
import time
from collections.abc import Mapping
from datetime import datetime

import httpx

from benchmarks.engine_bare import render_bare
from benchmarks.farm_process import Watched, running_farm
from benchmarks.planned import TEN_CHAPTERS, sentences
from benchmarks.report import at_least, emit, parser

ENDED = {"completed", "partial", "failed", "cancelled"}
TARGETS = {"efficiency": 0.65, "efficiency_mp3": 0.55, "efficiency_device": 0.93}
DEVICE = {"base_s": 0.05, "per_item_s": 0.04}
DEVICE_BATCH = 8


def render(farm: Watched, body: Mapping[str, object]) -> dict[str, object]:
    """Submit a job and wait for its end; raises when it is not `completed`."""
    with httpx.Client(base_url=farm.url, timeout=60) as client:
        reply = client.post("/v1/jobs", json={"reuse": False} | dict(body))
        reply.raise_for_status()
        job_id = reply.json()["id"]
        while True:
            job = client.get(f"/v1/jobs/{job_id}").json()
            if job["state"] in ENDED:
                break
            time.sleep(0.25)  # as often as a progress bar would ask
        if job["state"] != "completed":
            raise RuntimeError(f"job ended as {job['state']}: {job['error']}")
        return {"id": job_id, "wall_s": job_seconds(job), **job["progress"]}


def job_seconds(job: Mapping[str, str]) -> float:
    """From accepted to ended, by the ledger's clock: polling adds nothing to it."""
    created, ended = (datetime.fromisoformat(job[name]) for name in ("created_at", "ended_at"))
    return (ended - created).total_seconds()


def measure_cpu_engine(runs: int, cores: int) -> dict[str, object]:
    """Bare engine against the farm with the CPU engine."""
    text = TEN_CHAPTERS.read_text()
    spoken = sentences(text)
    arms: dict[str, list[float]] = {"bare": [], "flac": [], "mp3": []}
    cpu: dict[str, dict[str, float]] = {}
    audio_s = 0.0
    seeds = itertools.count(1)
    with running_farm(engine="hibari", nodes=cores) as farm:
        render(farm, {"text": "One warm-up sentence.", "engine": "hibari", "format": "mp3"})
        for _ in range(runs):
            bare = render_bare("hibari", spoken, processes=cores)
            arms["bare"].append(bare.audio_s / bare.wall_s)
            for audio_format in ("flac", "mp3"):
                before = farm.cpu_s()
                body = {
                    "text": text,
                    "engine": "hibari",
                    "format": audio_format,
                    "split_chapters": True,
                    "seed": next(seeds),  # nothing that an earlier run rendered may serve
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
        "sentences": len(spoken),
        "engine_xrt": round(medians["bare"], 2),
        "farm_xrt": round(medians["flac"], 2),
        "farm_mp3_xrt": round(medians["mp3"], 2),
        "efficiency": round(medians["flac"] / medians["bare"], 3),
        "efficiency_mp3": round(medians["mp3"] / medians["bare"], 3),
        "runs_xrt": {arm: [round(v, 2) for v in values] for arm, values in arms.items()},
        "cpu_s_by_kind": cpu,
        "overhead_ms_cpu_per_sentence": {
            arm: round(
                1000 * sum(s for k, s in used.items() if k != "engine host") / len(spoken), 1
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


def main() -> None:
    """Measure and report."""
    options = parser(__doc__)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--cores", type=int, default=2, help="engine processes in both arms")
    options.add_argument("--segments", type=int, default=1_000, help="for the simulated device")
    options.add_argument("--only", choices=["engine", "device"])
    args = options.parse_args()
    figures: dict[str, object] = {}
    if args.only != "device":
        figures |= measure_cpu_engine(args.runs, args.cores)
    if args.only != "engine":
        figures |= measure_device(args.segments)
    bars = [
        at_least(name, float(str(figures[name])), target)
        for name, target in TARGETS.items()
        if name in figures
    ]
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


if __name__ == "__main__":
    main()
