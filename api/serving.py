"""Serving the app with uvicorn so that it stops gracefully: streams end, requests finish."""

import socket

import uvicorn
from fastapi import FastAPI

from shared.settings import Settings

GRACE_S = 5


class Server(uvicorn.Server):
    """Uvicorn, which tells the app's event streams to end before it waits for them."""

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.api_host,
                port=settings.api_port,
                log_config=None,  # the process has configured logging already
                access_log=False,
                server_header=False,
                ws="none",
                timeout_graceful_shutdown=GRACE_S,
            )
        )
        self._stopping = app.state.deps.stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, end streams, give what is under way a few seconds, close."""
        self._stopping.set()
        await super().shutdown(sockets)
