"""What operators and their machines ask: alive, ready, and in which numbers."""

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from api.deps import With
from api.problems import RETRY_AFTER_S, problem
from api.readiness import Check
from api.routes.answers import refusals

router = APIRouter(tags=["operations"])


class Alive(BaseModel):
    """The process answers."""

    status: str = "alive"


class Ready(BaseModel):
    """Every part answers."""

    status: str = "ready"
    checks: dict[str, Check]


@router.get("/livez", summary="Is the process alive")
async def livez() -> Alive:
    """Asks nothing else: a farm whose database is away needs no restart of its API."""
    return Alive()


@router.get(
    "/readyz", response_model=Ready, responses=refusals(503), summary="Is the whole farm there"
)
async def readyz(deps: With) -> Response:
    """SQL, Redis, the object store and at least one node; each is reported by name."""
    checks = await deps.readiness.look()
    shown = {name: check.model_dump() for name, check in checks.items()}
    failed = [f"{name}: {check.detail}" for name, check in checks.items() if not check.ok]
    if failed:
        return problem(
            503,
            "not-ready",
            "; ".join(failed),
            headers={"Retry-After": str(RETRY_AFTER_S)},
            fields={"checks": shown},
        )
    return JSONResponse({"status": "ready", "checks": shown})


@router.get("/metrics", response_class=Response, summary="Figures for Prometheus")
def metrics(deps: With) -> Response:
    """Prometheus text exposition."""
    return Response(deps.metrics.exposition(), media_type=CONTENT_TYPE_LATEST)
