"""Notices that the database's clock was set back, by a clock that nobody can set. Reads neither."""

from dataclasses import dataclass

TOLERANCE_S = 2.0  # a clock that is slewed, or read late, is not set


@dataclass(slots=True)
class ClockWatch:
    """Compares how far both clocks have gone since the last look."""

    _database_s: float | None = None
    _steady_s: float = 0.0

    def was_set_back(self, database_s: float, steady_s: float) -> bool:
        """Take one reading of each, in seconds; True also at the first: who knows what was before.

        Readings are to be taken together; a delay between them may only make the second one later.
        """
        before_s, passed_s = self._database_s, steady_s - self._steady_s
        self._database_s, self._steady_s = database_s, steady_s
        return before_s is None or database_s - before_s < passed_s - TOLERANCE_S
