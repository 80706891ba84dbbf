"""The API as a process of its own: `python -m api`. Listens where the settings say."""

import signal
import sys

from api.main import create_app
from api.serving import Server
from shared.errors import SetupError
from shared.farm import farm_of
from shared.leaving import leave_quickly
from shared.lifeline import die_with_parent
from shared.logs import configure_logging
from shared.settings import Settings


def main() -> None:
    """Serve until SIGTERM or SIGINT; requests under way get a few seconds to finish."""
    die_with_parent()
    leave_quickly()
    configure_logging("api")
    for signum in (signal.SIGTERM, signal.SIGINT):
        # Uvicorn raises the signal again when it is done: an orderly end is no failure.
        signal.signal(signum, lambda *_: None)
    settings = Settings()
    with farm_of(settings) as farm:
        try:
            app = create_app(farm)
        except SetupError as error:
            sys.exit(f"voxfarm api: {error}")
        Server(app, settings).run()


if __name__ == "__main__":
    main()
