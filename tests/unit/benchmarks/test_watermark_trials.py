"""The watermark's benchmark: trials go on where a run was stopped, and rates are told honestly."""

from pathlib import Path

import pytest

from benchmarks.watermark import cells, counts
from benchmarks.watermark.journal import Journal
from benchmarks.watermark.summary import bars, told


def record(*, ok: bool = True) -> dict[str, object]:
    return {"ok": ok, "wrong": False, "present": True, "z": 9.0, "voice": "x"}


def test_what_is_written_down_is_not_done_again_and_half_a_line_is(tmp_path: Path) -> None:
    path, other = tmp_path / "one", tmp_path / "other"
    Journal(path).add("pcm 15 s", 0, record())
    Journal(path).add("pcm 15 s", 2, record())
    Journal(other).add("pcm 15 s", 1, record())
    with path.open("ab") as file:
        file.write(b'{"cell": "pcm 15 s", "n": 4, "ok"')
    journal = Journal(path, [other])
    assert [journal.has("pcm 15 s", n) for n in range(5)] == [True, True, True, False, False]
    journal.add("pcm 15 s", 4, record())
    assert len(Journal(path).by_cell()["pcm 15 s"]) == 3


def test_the_bound_is_that_of_clopper_and_pearson() -> None:
    assert counts.at_most(0, 1_000) == pytest.approx(1 - 0.05 ** (1 / 1_000))
    assert counts.at_most(1, 1_000) == pytest.approx(0.004735, abs=1e-5)
    assert counts.at_most(5, 5) == 1.0


def test_too_few_trials_and_none_are_no_success() -> None:
    trials = {"pcm 15 s": [record()] * 10}
    made = {bar.name: bar for bar in bars(trials, {}, {})}
    assert (made["pcm 15 s: errors"].value, made["pcm 15 s: errors"].ok) == (0.0, False)
    assert (made["8khz 15 s: errors"].value, made["8khz 15 s: errors"].ok) == (None, False)
    assert told(trials)["ids"]["pcm 15 s"]["trials"] == 10


def test_enough_trials_pass_with_the_errors_that_are_allowed_and_no_more() -> None:
    [cell] = [cell for cell in cells.CELLS if cell.name == "pcm 15 s"]
    for errors, passes in ((1, True), (2, False)):
        records = [record(ok=False)] * errors + [record()] * (cell.trials - errors)
        made = {bar.name: bar for bar in bars({cell.name: records}, {}, {})}
        assert made["pcm 15 s: errors"].ok is passes
