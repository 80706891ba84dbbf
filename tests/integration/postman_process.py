"""The scheduler's part in webhooks as a process of its own, without a store or an engine."""

import sys
import time

from shared.errors import TransientError
from shared.farm import farm_of
from shared.lifeline import die_with_parent
from shared.settings import Settings
from worker.scheduler import tick_webhooks


def main() -> None:
    die_with_parent()
    settings = Settings()
    with farm_of(settings) as farm:
        while True:
            try:
                tick_webhooks(farm)
            except TransientError as error:
                sys.stderr.write(f"{error}\n")
            time.sleep(settings.scheduler_period_s)


if __name__ == "__main__":
    main()
