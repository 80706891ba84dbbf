"""The API's app factory: puts routes, layers and means together. Opens and closes nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from anyio import to_thread
from fastapi import FastAPI
from sqlalchemy import Connection
from starlette.middleware import Middleware

from api.admission import Admission
from api.auth import is_loopback, refuse_open_bind
from api.deps import PATIENCE_S, Deps
from api.metrics import Metrics
from api.middleware.body_limit import BodyLimit
from api.middleware.host_guard import HostGuard
from api.middleware.last_resort import LastResort
from api.middleware.request_metrics import RequestMetrics
from api.openapi import DESCRIPTION, TAGS, describe
from api.outlooks import Outlooks
from api.problems import install_problem_handlers
from api.readiness import Readiness
from api.routes import catalogue, health, job_outputs, jobs, promises
from api.waking import Waker
from shared import outlook
from shared.errors import SetupError, TransientError
from shared.farm import Farm
from shared.ledger import migrate, nodes
from shared.ledger.clock import read_clock


def create_app(farm: Farm) -> FastAPI:
    """The API over a farm's ledger, queues and store. Stateless: run as many as you like.

    `app.state.deps.stopping` ends open event streams when set. Raises SetupError when the
    settings would serve strangers.
    """
    settings = farm.settings
    refuse_open_bind(settings)
    metrics = Metrics(farm.database)
    waker = Waker(farm.dispatcher.send_steps)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        waker.start()
        yield
        await to_thread.run_sync(waker.stop)

    layers = [
        Middleware(RequestMetrics, metrics=metrics),
        Middleware(LastResort),
        Middleware(BodyLimit, max_bytes=settings.max_body_bytes),
    ]
    if is_loopback(settings.api_host) and not settings.allow_unauthenticated:
        layers.insert(2, Middleware(HostGuard))
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
        outlooks=_outlooks(farm),
    )
    install_problem_handlers(app)
    for routes in (jobs, job_outputs, promises, catalogue, health):
        app.include_router(routes.router)
    app.openapi = lambda: describe(app)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _outlooks(farm: Farm) -> Outlooks:
    engine = farm.settings.default_engine
    return Outlooks(
        lambda: farm.database.read(lambda conn: outlook.read(conn, engine), patience_s=PATIENCE_S)
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
