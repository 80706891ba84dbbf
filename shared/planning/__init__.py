"""Planning: a job's text becomes parts and pieces. Pure: knows no ledger, queue or engine."""

from shared.planning.chapters import find_chapters
from shared.planning.coverage import Uncovered, uncovered
from shared.planning.duration import Expected, expected
from shared.planning.pieces import Part, Piece, Plan
from shared.planning.plan import plan_text
from shared.planning.speakable import (
    Unspeakable,
    check_text,
    first_unspeakable,
    is_any_speakable,
)

__all__ = [
    "Expected",
    "Part",
    "Piece",
    "Plan",
    "Uncovered",
    "Unspeakable",
    "check_text",
    "expected",
    "find_chapters",
    "first_unspeakable",
    "is_any_speakable",
    "plan_text",
    "uncovered",
]
