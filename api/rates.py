"""How many requests a caller may make in a moving window. Counts in this process; knows no HTTP.

The limit is per process by design: it guards a process's own threads, needs no Redis and so works
with Redis away. What must hold for the whole farm, the quota, is kept by the ledger.
"""

from collections import deque
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a request may pass. `reset_s`: until the window has room for one more, or is empty.

    `remaining` requests may follow at once.
    """

    allowed: bool
    limit: int
    window_s: int
    remaining: int
    reset_s: float


class RateLimit(Protocol):
    """Counts requests by caller."""

    def hit(self, caller: str, now_s: float) -> Verdict:
        """Count one request if it may pass, and say whether it may."""
        ...


class MovingWindow:
    """At most `limit` requests in any `window_s` seconds; what is refused does not count.

    Memory: one number for each request of the last window. Not thread-safe.
    """

    def __init__(self, limit: int, *, window_s: int = 1) -> None:
        self._limit = limit
        self._window_s = window_s
        self._passed: dict[str, deque[float]] = {}
        self._swept_at = float("-inf")

    def hit(self, caller: str, now_s: float) -> Verdict:
        """See RateLimit."""
        self._sweep(now_s)
        passed = self._passed.setdefault(caller, deque())
        while passed and passed[0] <= now_s - self._window_s:
            passed.popleft()
        allowed = len(passed) < self._limit
        if allowed:
            passed.append(now_s)
        full = len(passed) >= self._limit
        until = passed[0 if full else -1] + self._window_s if passed else now_s
        return Verdict(
            allowed=allowed,
            limit=self._limit,
            window_s=self._window_s,
            remaining=self._limit - len(passed),
            reset_s=max(0.0, until - now_s),
        )

    def _sweep(self, now_s: float) -> None:
        """Forget callers who have been quiet for a window."""
        if now_s - self._swept_at < self._window_s:
            return
        self._swept_at = now_s
        quiet = [who for who, at in self._passed.items() if at[-1] <= now_s - self._window_s]
        for who in quiet:
            del self._passed[who]
