"""Remembers which utterances ran out of memory by themselves. Knows no engine and no link.

Memory may be short for a moment without the utterance being too large: it is asked for again, so
many times, before that counts as its own fault. Whoever asks again asks by another id, so it is
known by what it says; only digests are kept.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field

from worker.engines.base import Utterance

FORGIVEN = 2  # times, by each host
_REMEMBERED = 256  # utterances


@dataclass(slots=True)
class Shortages:
    """How often each of the last utterances that ran out of memory did so."""

    _counts: OrderedDict[bytes, int] = field(default_factory=OrderedDict)

    def forgives(self, utterance: Utterance) -> bool:
        """Count one more; whether memory is still to be held short, not the utterance too large."""
        said = (
            utterance.text,
            utterance.voice,
            utterance.language,
            utterance.speed,
            utterance.seed,
            sorted(utterance.params.items()),
        )
        key = hashlib.sha256(repr(said).encode(errors="surrogatepass")).digest()
        count = self._counts.pop(key, 0) + 1
        self._counts[key] = count
        if len(self._counts) > _REMEMBERED:
            self._counts.popitem(last=False)
        return count <= FORGIVEN
