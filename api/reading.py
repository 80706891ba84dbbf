"""A request body as one of our models, or a refusal that says which field is wrong and how."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from api.problems import field_errors
from api.strict_json import read_json
from shared.errors import UsageError

M = TypeVar("M", bound=BaseModel)

# What a program would like to tell apart; the first kind found names the problem.
_CODE_OF_KIND = {
    "extra_forbidden": "unknown-field",
    "text_or_chapters": "text-or-chapters",
    "split_given_chapters": "text-or-chapters",
    "control_character": "control-character",
}


def read_as(model: type[M], body: bytes) -> M:
    """The model in a JSON body. Raises UsageError; no value of a field is repeated."""
    try:
        return model.model_validate(read_json(body))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        kinds = {finding["type"] for finding in found}
        errors = field_errors(found)
        detail = "; ".join(
            f"{item['field']}: {item['message']}" if item["field"] else item["message"]
            for item in errors
        )
        raise UsageError(detail, code=_code(kinds), errors=errors) from None


def _code(kinds: set[str]) -> str:
    return next((code for kind, code in _CODE_OF_KIND.items() if kind in kinds), "invalid-field")
