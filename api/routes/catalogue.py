"""What the farm can speak with: voices and engines, as its nodes published them."""

from fastapi import APIRouter

from api.auth import Tenant
from api.deps import Deps, With
from api.routes.answers import refusals
from api.views.catalogue import EngineList, EngineView, VoiceList
from shared.ledger import nodes
from shared.ledger.nodes import EngineRecord

router = APIRouter(prefix="/v1", tags=["catalogue"])


@router.get("/voices", responses=refusals(503), summary="List voices")
def list_voices(deps: With, _tenant: Tenant) -> VoiceList:
    """Every voice that a job may name, with its language and licence."""
    return VoiceList.of(_offered(deps))


@router.get("/engines", responses=refusals(503), summary="List engines")
def list_engines(deps: With, _tenant: Tenant) -> EngineList:
    """Every engine that a job may name, and how many nodes run it now."""
    return EngineList(engines=[EngineView.of(record) for record in _offered(deps)])


def _offered(deps: Deps) -> list[EngineRecord]:
    allowed = deps.farm.settings.allow_testing_engines
    return [record for record in deps.read(nodes.engines) if allowed or not record.info.testing]
