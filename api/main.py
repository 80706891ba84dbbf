"""The API's app factory: puts routes, layers and means together. Opens and closes nothing."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version

from anyio import to_thread
from fastapi import FastAPI
from sqlalchemy import Connection
from starlette.middleware import Middleware

from api.admission import Admission
from api.auth import is_loopback, is_open, refuse_open_bind
from api.deps import PATIENCE_S, Deps
from api.keyring import Keyring, Keys
from api.load import LoadGauge, look
from api.metrics import Metrics
from api.middleware.body_limit import BodyLimit
from api.middleware.gate import Gate
from api.middleware.host_guard import HostGuard
from api.middleware.last_resort import LastResort
from api.middleware.request_metrics import RequestMetrics
from api.openapi import DESCRIPTION, TAGS, describe
from api.outlooks import Outlooks
from api.problems import install_problem_handlers
from api.rates import MovingWindow
from api.readiness import Readiness
from api.routes import catalogue, deliveries, health, job_outputs, jobs, promises, webhooks
from api.routes.answers import refusals
from api.waking import Waker
from shared import outlook
from shared.errors import SetupError, TransientError
from shared.farm import Farm
from shared.ledger import keys, migrate, nodes
from shared.ledger.clock import read_clock

log = logging.getLogger(__name__)


def create_app(farm: Farm) -> FastAPI:
    """The API over a farm's ledger, queues and store. Stateless: run as many as you like.

    `app.state.deps.stopping` ends open event streams when set. Raises SetupError when the
    settings would serve strangers.
    """
    settings = farm.settings
    if not is_open(settings):
        refuse_open_bind(settings, keys_exist=_keys_exist(farm))
    keyring = _keyring(farm)
    rates = MovingWindow(settings.requests_per_s) if settings.requests_per_s else None
    metrics = Metrics(farm.database)
    waker = Waker(replace(farm.dispatcher, place="api").send_steps)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        waker.start()
        yield
        await to_thread.run_sync(waker.stop)

    layers = [
        Middleware(RequestMetrics, metrics=metrics),
        Middleware(LastResort),
        Middleware(Gate, keyring=keyring, rates=rates),
        Middleware(BodyLimit, max_bytes=settings.max_body_bytes),
    ]
    if is_loopback(settings.api_host) and not settings.allow_unauthenticated:
        layers.insert(3, Middleware(HostGuard))
    app = FastAPI(
        title="Voxfarm",
        version=version("voxfarm"),
        description=DESCRIPTION,
        openapi_tags=TAGS,
        middleware=layers,
        lifespan=lifespan,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.deps = Deps(
        farm=farm,
        admission=Admission(settings),
        metrics=metrics,
        readiness=_readiness(farm),
        waker=waker,
        keyring=keyring,
        load=_load(farm),
        outlooks=_outlooks(farm),
    )
    install_problem_handlers(app)
    for routes in (jobs, job_outputs, promises, webhooks, deliveries, catalogue):
        app.include_router(routes.router, responses=refusals(401, 429))
    app.include_router(health.router)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _keys_exist(farm: Farm) -> bool:
    """Look for keys once, at the start. Without a ledger to ask, nobody gets in without one."""
    try:
        if not migrate.is_current(farm.database):
            return False
        return farm.database.read(keys.ever_created, patience_s=PATIENCE_S)
    except TransientError as error:
        log.warning("starting without having seen a key: %s", error)
        return True


def _keyring(farm: Farm) -> Keyring:
    def read(conn: Connection) -> Keys:
        return Keys(tuple(keys.listed(conn)), keys.ever_created(conn))

    return Keyring(
        lambda: farm.database.read(read, patience_s=PATIENCE_S),
        anybody=is_open(farm.settings),
        local_key=farm.settings.local_key.get_secret_value(),
    )


def _load(farm: Farm) -> LoadGauge:
    return LoadGauge(
        lambda: farm.database.read(lambda conn: look(conn, farm.settings), patience_s=PATIENCE_S)
    )


def _outlooks(farm: Farm) -> Outlooks:
    return Outlooks(
        lambda: farm.database.read(
            lambda conn: outlook.read(conn, farm.settings), patience_s=PATIENCE_S
        )
    )


def _readiness(farm: Farm) -> Readiness:
    def ledger() -> str:
        farm.database.read(read_clock, patience_s=0)  # else the next line waits for long
        if not migrate.is_current(farm.database):
            raise SetupError("the schema is not at this version's revision")
        return farm.database.dialect

    def broker() -> str:
        farm.broker.ping()
        return "answers"

    def store() -> str:
        for _ in farm.store.keys("readyz/"):  # lists nothing, but needs bucket and credentials
            break
        return "answers"

    def live_nodes() -> str:
        def count(conn: Connection) -> int:
            return sum(record.nodes for record in nodes.engines(conn))

        found = farm.database.read(count, patience_s=0)
        if not found:
            raise TransientError("no node is alive")
        return f"{found} alive"

    return Readiness({"ledger": ledger, "broker": broker, "store": store, "nodes": live_nodes})
