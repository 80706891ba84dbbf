"""Planning: a job's text becomes parts and pieces. Pure: knows no ledger, queue or engine."""

from shared.planning.chapters import find_chapters
from shared.planning.coverage import Uncovered, uncovered
from shared.planning.pieces import Part, Piece, Plan
from shared.planning.plan import plan_text
from shared.planning.speakable import Unspeakable, check_text, first_unspeakable

__all__ = [
    "Part",
    "Piece",
    "Plan",
    "Uncovered",
    "Unspeakable",
    "check_text",
    "find_chapters",
    "first_unspeakable",
    "plan_text",
    "uncovered",
]
