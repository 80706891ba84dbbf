"""The table of refusals in docs/api.md against what the code refuses with."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from api.problems import usage_problem
from shared.errors import ConflictError, NotFoundError, UsageError

ROOT = Path(__file__).parents[3]
ERRORS = {error.__name__: error for error in (UsageError, NotFoundError, ConflictError)}
FOLDERS = ("api", "shared/ledger")
OF_COMMANDS_ONLY = {"key-not-found"}  # `voxfarm keys` works on the ledger itself


def rows() -> list[tuple[str, str]]:
    """(statuses, codes) of each row, as written."""
    section = (
        (ROOT / "docs" / "api.md").read_text().partition("## Refusals")[2].partition("\n## ")[0]
    )
    return re.findall(r"^\| ([\d, ]+) \| (.*) \|$", section, re.MULTILINE)


def raised() -> Iterator[tuple[int, str]]:
    """(status, code) of every refusal that the code spells out."""
    for path in sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            for keyword in node.keywords:
                error = ERRORS.get(node.func.id)
                if error and keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    code = str(keyword.value.value)
                    yield usage_problem(error("", code=code)).status_code, code


def test_each_status_has_one_row_and_they_are_in_order() -> None:
    statuses = [re.findall(r"\d+", told) for told, _ in rows()]
    flat = [status for row in statuses for status in row]
    assert len(flat) == len(set(flat))
    first = [int(row[0]) for row in statuses]
    assert first == sorted(first)


@pytest.mark.parametrize(
    ("status", "code"), sorted(r for r in set(raised()) if r[1] not in OF_COMMANDS_ONLY)
)
def test_each_code_is_in_the_row_of_its_status(status: int, code: str) -> None:
    [codes] = [codes for told, codes in rows() if str(status) in re.findall(r"\d+", told)]
    assert f"`{code}`" in codes
