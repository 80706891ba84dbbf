"""The API's description of itself. Completes what FastAPI finds out with the parts it cannot."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.problems import Problem
from api.submission import Submission
from api.webhook_wish import WebhookWish

DESCRIPTION = """\
Text in, audio out: submit a job, follow it, fetch its files.

Refusals are RFC 9457 problems (`application/problem+json`): `code` is the stable word for
programs, `detail` a sentence for people. Lists are paged: pass `next_cursor` as `cursor`.
"""
TAGS = [
    {
        "name": "jobs",
        "description": "Submit text, look at jobs, pause, cancel and retry them.",
    },
    {"name": "outputs", "description": "Progress, segments and files of a job."},
    {"name": "promises", "description": "What each tier can keep, and what a job would take."},
    {"name": "webhooks", "description": "Addresses that are told of jobs, and what became of it."},
    {"name": "catalogue", "description": "Voices and engines."},
    {"name": "operations", "description": "Health and figures."},
]
KEY_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key, from `voxfarm keys create`. It names the tenant.",
}
_REF = "#/components/schemas/{model}"


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document of the app, made at the first call."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            tags=app.openapi_tags,
        )
        schemas = document["components"]["schemas"]
        for model in (
            Submission,
            WebhookWish,
            Problem,
        ):  # read and written by hand, so FastAPI misses them
            schema = model.model_json_schema(ref_template=_REF)
            schemas.update(schema.pop("$defs", {}))
            schemas[model.__name__] = schema
        _forget_validation_errors(document)
        document["components"]["securitySchemes"] = {"key": KEY_SCHEME}
        document["security"] = [{"key": []}, {}]  # none is needed until the first one is made
        app.openapi_schema = document
    return app.openapi_schema


def _forget_validation_errors(document: dict[str, Any]) -> None:
    """Drop the form of refusal that FastAPI announces by itself: ours are problems."""
    for methods in document["paths"].values():
        for operation in methods.values():
            refusal = operation["responses"].get("422", {}).get("content", {})
            if "application/json" in refusal:
                del operation["responses"]["422"]
    for name in ("HTTPValidationError", "ValidationError"):
        document["components"]["schemas"].pop(name, None)
