"""The Python environment of celery-batches: it needs Celery < 5.7, so it has one of its own."""

import subprocess
import venv
from pathlib import Path

from platformdirs import user_cache_path

REQUIREMENTS = ("celery-batches==0.11", "celery==5.6.3", "redis>=5", "packaging")
INSTALL_S = 300


class NotInstallableError(Exception):
    """It cannot be had here; the message says why."""


def batches_python(folder: Path | None = None) -> Path:
    """The interpreter of that environment, made at the first call. Raises NotInstallableError."""
    place = folder or user_cache_path("voxfarm", appauthor=False) / "celery-batches-0.11"
    python, complete = place / "bin" / "python", place / "complete"
    if complete.exists():
        return python
    try:
        venv.create(place, clear=True, with_pip=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *REQUIREMENTS],
            check=True,
            capture_output=True,
            text=True,
            timeout=INSTALL_S,
        )
    except subprocess.CalledProcessError as error:
        words = (error.stderr or "").strip().splitlines()
        raise NotInstallableError(words[-1] if words else str(error)) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstallableError(str(error)) from error
    complete.touch()
    return python
