"""The local farm's settings: read once, and handed to children as environment variables."""

import json
import os
from collections.abc import Mapping

from pydantic import ValidationError

from shared.errors import UsageError
from shared.settings import Settings


def load_settings(**chosen: object) -> Settings:
    """Read the environment; what was chosen on the command line (and is not None) comes first.

    UsageError names the variable that is wrong.
    """
    given = {name: value for name, value in chosen.items() if value is not None}
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic checks them
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = "VOXFARM_" + "__".join(str(step) for step in first["loc"]).upper()
        named = f"{name}: " if first["loc"] else ""
        raise UsageError(f"{named}{first['msg']}", code="bad-setting") from None
    except ValueError as error:  # pydantic-settings: a value that is no JSON
        raise UsageError(str(error), code="bad-setting") from None


def core_count() -> int:
    """Count the CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def children_environment(
    settings: Settings,
    *,
    redis_url: str,
    s3_endpoint: str,
    s3_access_key: str,
    s3_secret_key: str,
    local_key: str,
) -> Mapping[str, str]:
    """Return the environment of the farm's processes: ours, with every address made explicit."""
    data_dir = settings.data_dir.absolute()
    placed = settings.model_copy(update={"data_dir": data_dir})
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "PYTHONSAFEPATH": "1",  # a folder `api` where the user stands is not our package
        "VOXFARM_DATA_DIR": str(data_dir),
        "VOXFARM_DATABASE_URL": placed.sqlalchemy_url,
        "VOXFARM_REDIS_URL": redis_url,
        "VOXFARM_S3_ENDPOINT": s3_endpoint,
        "VOXFARM_S3_PUBLIC_ENDPOINT": "",
        "VOXFARM_S3_SECURE": "false",
        "VOXFARM_S3_ACCESS_KEY": s3_access_key,
        "VOXFARM_S3_SECRET_KEY": s3_secret_key,
        "VOXFARM_LOCAL_KEY": local_key,
        "VOXFARM_API_HOST": settings.api_host,
        "VOXFARM_API_PORT": str(settings.api_port),
        "VOXFARM_ENGINES": json.dumps(settings.engines),
        "VOXFARM_DEFAULT_ENGINE": settings.default_engine,
        "VOXFARM_ALLOW_TESTING_ENGINES": json.dumps(settings.allow_testing_engines),
        "VOXFARM_NODES": str(settings.nodes),
    }
