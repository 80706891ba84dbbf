"""A whole novel through one `voxfarm render`: speed, memory by process, coverage, and WER.

Needs a text file of your own (the project ships only an excerpt). Chapters named by `--judge` are
transcribed with whisper-base from the delivered files. Run:
python -m benchmarks.novel novel.txt --judge 1 --judge 11 --json -
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil

from benchmarks.farm_process import kind_of
from benchmarks.judges import hold_against, transcribe, whisper_base
from benchmarks.planned import spec_for
from benchmarks.report import at_least, at_most, emit, parser
from shared.planning import Plan, plan_text, uncovered
from shared.segments import SegmentKind

PUBLISHED_XRT = 45.7  # the nearest published full-book figure, on a GPU
PUBLISHED_WER = 0.0334


def render(novel: Path, folder: Path) -> tuple[dict[str, object], dict[str, float]]:
    """Render with chapters; returns the command's report and peak memory in MB by process kind."""
    command = [sys.executable, "-m", "cli", "render", str(novel), "--chapters", "--json"]
    command += ["--format", "mp3", "--out", str(folder / "out"), "--data", str(folder / "farm")]
    peak_mb: dict[str, float] = {}
    with (folder / "report.json").open("wb") as out:
        process = subprocess.Popen(command, stdout=out)
        watcher = threading.Thread(target=_watch, args=(folder, process, peak_mb), daemon=True)
        watcher.start()
        process.wait()
    watcher.join()
    if process.returncode != 0:
        raise RuntimeError(f"voxfarm render ended with {process.returncode}")
    return json.loads((folder / "report.json").read_text()), peak_mb


def _watch(folder: Path, process: subprocess.Popen[bytes], peak_mb: dict[str, float]) -> None:
    """Sum memory by kind over every process of this data folder, which is no child of ours."""
    mark = str(folder / "farm")
    while process.poll() is None:
        now: dict[str, float] = {}
        for found in psutil.process_iter():
            try:
                kind = kind_of(found)
                ours = mark in " ".join(found.cmdline()) or (
                    kind not in {"other", "gone"}
                    and found.environ().get("VOXFARM_DATA_DIR", "").startswith(mark)
                )
                if ours:
                    now[kind] = now.get(kind, 0.0) + found.memory_info().rss / 1e6
            except psutil.Error:
                continue
        for kind, rss_mb in now.items():
            peak_mb[kind] = max(peak_mb.get(kind, 0.0), rss_mb)
        time.sleep(2)


def missing_characters(novel: str, manifest: dict[str, Any], plan: Plan) -> int:
    """Characters of the source that nobody hears: of gaps, of skips, and of no segment at all.

    A skip is done as soon as it is planned, and is unspoken all the same.
    """
    rows = manifest["segments"]
    covered = sum(
        row["end"] - row["start"]
        for row in rows
        if row["state"] == "done" and row["kind"] != SegmentKind.SKIP
    )
    tiled = all(a["end"] == b["start"] for a, b in pairwise(rows))
    problems = len(uncovered(novel, plan.pieces))
    return (len(novel) - covered) + (0 if tiled else len(novel)) + problems


def main() -> None:
    """Render, count, listen, report."""
    options = parser(__doc__)
    options.add_argument("novel", type=Path)
    options.add_argument("--judge", type=int, action="append", default=[], metavar="CHAPTER")
    options.add_argument("--keep", type=Path, help="folder to work in and keep")
    args = options.parse_args()
    text = args.novel.read_text()
    with tempfile.TemporaryDirectory(prefix="voxfarm-novel-") as made:
        folder = args.keep or Path(made)
        folder.mkdir(parents=True, exist_ok=True)
        report, peak_mb = render(args.novel, folder)
        audio = [f for f in report["files"] if f["kind"] == "audio"]  # type: ignore[attr-defined,index]
        [manifest_file] = [f for f in report["files"] if f["kind"] == "manifest"]  # type: ignore[attr-defined,index]
        manifest = json.loads(Path(manifest_file["path"]).read_text())
        plan = plan_text(
            text, parts=None, spec=spec_for("hibari").model_copy(update={"split_chapters": True})
        )
        wer, heard = _listen(args.judge, audio, plan)
    missing = missing_characters(text, manifest, plan)
    xrt = float(str(report["x_real_time"]))
    figures = {
        "characters": len(text),
        "parts": len(audio),
        "segments": len(manifest["segments"]),
        "skips": len(manifest["skips"]),
        "gaps": len(manifest["gaps"]),
        "audio_s": report["audio_s"],
        "wall_s": report["wall_s"],
        "x_real_time": xrt,
        "spans_s": report["spans_s"],
        "peak_rss_mb": {kind: round(mb) for kind, mb in sorted(peak_mb.items())},
        "missing_characters": missing,
        "wer_by_chapter": heard,
        "wer": wer if args.judge else None,
    }
    bars = [
        at_least("x_real_time", xrt, PUBLISHED_XRT),
        at_most("missing_characters", missing, 0),
    ]
    if args.judge:
        bars.append(at_most("wer", wer, PUBLISHED_WER))
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


def _listen(
    chapters: list[int], audio: list[dict[str, object]], plan: Plan
) -> tuple[float, dict[int, float]]:
    """Word error rate over the chosen chapters together, and of each."""
    if not chapters:
        return 0.0, {}
    model = whisper_base()
    errors, words, by_chapter = 0.0, 0, {}
    for chapter in chapters:  # part 0 is the front matter
        [file] = [f for f in audio if f["part"] == chapter]
        spoken = [p.text for p in plan.pieces if p.part == chapter and p.text]
        hearing = hold_against(spoken, transcribe(model, Path(str(file["path"]))))
        by_chapter[chapter] = round(hearing.wer, 4)
        errors += hearing.wer * hearing.words
        words += hearing.words
    return round(errors / words, 4), by_chapter


if __name__ == "__main__":
    main()
