"""Does the farm say what it was given, and does it sound well? Judged on the delivered file.

Renders the English sample through the whole embedded farm, transcribes the delivered file with
whisper-base and asks DNSMOS. Run: python -m benchmarks.quality --json -
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.judges import dnsmos, hold_against, transcribe, whisper_base
from benchmarks.planned import SAMPLE, sentences
from benchmarks.report import at_least, at_most, emit, parser


def main() -> None:
    """Render, listen, report."""
    args = parser(__doc__).parse_args()
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
    hearing = hold_against(sentences(SAMPLE.read_text()), heard)
    figures = {
        "words": hearing.words,
        "wer": round(hearing.wer, 4),
        "missing_sentences": list(hearing.missing_sentences),
        "dnsmos": round(mos, 3),
        "render": report,
    }
    bars = [
        at_most("wer", hearing.wer, 0.05),
        at_most("missing_sentences", len(hearing.missing_sentences), 0),
        at_least("dnsmos", mos, 3.2),
    ]
    emit(figures, bars, args.json)
    sys.exit(0 if all(bar.ok for bar in bars) else 1)


if __name__ == "__main__":
    main()
