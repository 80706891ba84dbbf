"""Does the farm say what it was given, and does it sound well? Judged on the delivered file.

Renders the English sample through the whole embedded farm, transcribes the delivered file with
whisper-base and asks DNSMOS. Run: python -m benchmarks.quality --json -
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.judges import dnsmos, hold_against, transcribe, whisper_base
from benchmarks.report import Bar, emit
from shared.planning import split_sentences

SAMPLE = Path(__file__).parents[1] / "samples" / "english.txt"


def main() -> None:
    """Render, listen, report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", default="-", metavar="PATH", help="where to, - for stdout")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="voxfarm-quality-") as folder:
        out = Path(folder) / "sample.mp3"
        command = [sys.executable, "-m", "cli", "render", str(SAMPLE), "--out", str(out), "--json"]
        done = subprocess.run(
            [*command, "--data", str(Path(folder) / "farm")],
            check=True,
            stdout=subprocess.PIPE,
        )
        report = json.loads(done.stdout)
        heard = transcribe(whisper_base(), out)
        mos = dnsmos(out)
    hearing = hold_against(split_sentences(SAMPLE.read_text()), heard)
    figures = {
        "words": hearing.words,
        "wer": round(hearing.wer, 4),
        "missing_sentences": list(hearing.missing_sentences),
        "dnsmos": round(mos, 3),
        "render": report,
    }
    missing = len(hearing.missing_sentences)
    bars = [
        Bar(name="wer", value=hearing.wer, target=0.05, ok=hearing.wer <= 0.05),
        Bar(name="missing_sentences", value=missing, target=0, ok=missing == 0),
        Bar(name="dnsmos", value=mos, target=3.2, ok=mos >= 3.2),
    ]
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


if __name__ == "__main__":
    main()
