"""Whether the local store takes a write just now."""

import shutil
from pathlib import Path

from minio.error import S3Error
from pydantic import SecretStr

from cli.servers.seaweed import SeaweedServer
from cli.store_watch import ROOM_BYTES
from shared import object_keys
from shared.errors import StoreError, VoxfarmError
from shared.settings import Settings
from shared.storage import S3Store


def store_refuses(settings: Settings, server: SeaweedServer) -> bool:
    """Write a small object; True when the store answers, and answers with an error of its own.

    A store that cannot be reached, or is still without its bucket, does not refuse.
    """
    placed = settings.model_copy(
        update={
            "s3_endpoint": server.endpoint,
            "s3_access_key": server.access_key,
            "s3_secret_key": SecretStr(server.secret_key),
            "s3_secure": False,
        }
    )
    try:
        S3Store(placed).put(object_keys.PROBE, b"probe", content_type="text/plain")
    except StoreError as error:
        return isinstance(error.__cause__, S3Error)
    except VoxfarmError:
        return False
    return False


def store_has_room(folder: Path) -> bool:
    """Whether the disk beneath the store could take what it refuses."""
    try:
        return shutil.disk_usage(folder).free >= ROOM_BYTES
    except OSError:
        return False
