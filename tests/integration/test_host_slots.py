"""An autoregressive engine behind a real host: full slots, chunks on the way, rush at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

from tests.hosts import ignore, running_host, utterance
from worker.engines.simulated_ar import steps_of
from worker.host.line import Line, Watchers

SLOTS = 8
STEP = {"base_s": 0.01, "per_row_s": 0.00125}


def test_a_finished_rows_slot_is_refilled_before_the_next_step() -> None:
    texts = [("x" * (20 + n * 37 % 120), n) for n in range(96)]
    with running_host("simulated-ar", **STEP) as host, ThreadPoolExecutor(2 * SLOTS) as pool:
        link = host.link
        futures = [
            pool.submit(
                link.synthesize, utterance(text, voice="tone", seed=seed), on_progress=ignore
            )
            for text, seed in texts
        ]
        for future in futures[: -3 * SLOTS]:
            assert future.result(60).size
        busy = link.ping()  # some still wait: until now every slot should have been taken
        for future in futures:
            future.result(60)
        done = link.ping()
    assert busy.row_steps / busy.steps >= 0.95 * SLOTS
    assert done.row_steps == sum(steps_of(text, seed) for text, seed in texts)


def test_rush_enters_at_the_next_free_slot_of_a_full_engine() -> None:
    with running_host("simulated-ar", **STEP) as host, ThreadPoolExecutor(2 * SLOTS) as pool:
        running = threading.Barrier(SLOTS + 1)
        over = list[str]()

        def say(name: str, chars: int, tier: str, begun: threading.Barrier | None) -> None:
            pending = [begun]

            def progress() -> None:
                if (barrier := pending[0]) is not None:
                    pending[0] = None
                    barrier.wait(30)

            asked = utterance("x" * chars, voice="tone", tier=tier, due_at=float(len(name)))
            host.link.synthesize(asked, on_progress=progress)
            over.append(name)

        lengths = [150, *[300] * (SLOTS - 1)]
        first = [pool.submit(say, f"row{n}", c, "bulk", running) for n, c in enumerate(lengths)]
        running.wait(30)  # all slots are taken, and would be for a while
        behind = [pool.submit(say, f"next{n}", 300, "bulk", None) for n in range(4)]
        rush = pool.submit(say, "rush, although due last", 6, "rush", None)
        for future in [*first, *behind, rush]:
            future.result(60)
    assert over[:2] == ["row0", "rush, although due last"]


def test_chunks_arrive_while_the_row_runs() -> None:
    with running_host("simulated-ar", **STEP) as host:
        line = Line(host.path, silence_s=30)
        ticks = list[int]()
        audio = line.synthesize(
            utterance("x" * 200, voice="tone"),
            Watchers(lambda: ticks.append(1), on_idle=ignore, on_waiting=ignore),
            alone=False,
        )
        line.close()
        assert len(ticks) >= steps_of("x" * 200, 1) // 8
        assert len(audio) == steps_of("x" * 200, 1) * 4800
