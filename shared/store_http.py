"""The HTTP client of the object store: how long it waits, and for what. Knows no S3.

urllib3 sends a request under the time limit for connecting. A limit that notices a dead host soon
would then be the limit for sending an 8 MiB part, which a slow line needs minutes for.
"""

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from shared.silent_peers import watch_over

CONNECT_S = 3.0
SEND_S = 60.0  # for one whole request body
ANSWER_S = 30.0


def store_http(*, connections: int, connect_s: float = CONNECT_S) -> urllib3.PoolManager:
    """A pool for so many threads; it tries twice more when the store cannot be reached or is busy.

    What may not be repeated (POST) is not.
    """
    pool = urllib3.PoolManager(
        maxsize=connections,
        timeout=urllib3.Timeout(connect=connect_s, read=ANSWER_S),
        retries=urllib3.Retry(total=2, backoff_factor=0.1, status_forcelist=(502, 503, 504)),
    )
    pool.pool_classes_by_scheme = {"http": _Pool, "https": _SecurePool}
    return pool


class _Connection(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(SEND_S)
        watch_over(self.sock)


class _SecureConnection(HTTPSConnection):
    def connect(self) -> None:
        super().connect()
        self.sock.settimeout(SEND_S)
        watch_over(self.sock)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection
