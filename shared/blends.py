"""How a mixture of voices is written: `zf_xiaoxiao:0.6+zf_xiaoyi:0.4`. Pure; knows no voice.

Weights are relative, so `a:3+b:1` is `a:0.75+b:0.25`; without any, as in `a+b`, all are alike.
"""

import re
from dataclasses import dataclass

MOST_VOICES = 8
_WEIGHTED = re.compile(r"(?P<name>[^:+\s]+)(?::(?P<weight>\d{1,6}(?:\.\d{1,6})?))?")
_DECIMALS = 4
_ROUNDED = (
    0.001  # so near to one, weights are shares already: a mixture written by us stays as it is
)


@dataclass(frozen=True, slots=True)
class Share:
    """A voice's part in a mixture; all parts add up to one."""

    name: str
    weight: float


def parse_blend(text: str) -> tuple[Share, ...] | None:
    """The shares as written, or None when the text is no mixture of at least two weighted names.

    A single name is no mixture, whatever its weight, and a name may appear once only.
    """
    found = [_WEIGHTED.fullmatch(part.strip()) for part in text.split("+")]
    matches = [match for match in found if match]
    if not 1 < len(found) <= MOST_VOICES or len(matches) < len(found):
        return None
    named = {match["name"]: float(match["weight"] or 1) for match in matches}
    whole = sum(named.values())
    whole = 1.0 if abs(whole - 1) < _ROUNDED else whole
    if len(named) < len(found) or min(named.values()) <= 0:
        return None
    shares = tuple(Share(name, round(weight / whole, _DECIMALS)) for name, weight in named.items())
    return shares if min(share.weight for share in shares) > 0 else None


def write_blend(shares: tuple[Share, ...]) -> str:
    """One spelling for each mixture, whatever the order: it goes into the identity of audio."""
    ordered = sorted(shares, key=lambda share: share.name)
    return "+".join(f"{share.name}:{share.weight:g}" for share in ordered)
