"""A node's consumer: takes sentences of some tiers and renders them on the node's engine hosts."""

import argparse
from pathlib import Path

from shared.broker import build_celery
from shared.farm import farm_of
from shared.leaving import leave_quickly
from shared.ledger import jobs
from shared.lifeline import die_with_parent
from shared.logs import configure_logging
from shared.settings import Settings
from shared.tiers import Tier
from worker.celery_main import serve
from worker.host.link import HostLink
from worker.rendering import Renderer
from worker.tasks import register_synth
from worker.watching import JobWatch


def main() -> None:
    """Run one consumer as a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m worker.consumer", description=__doc__)
    parser.add_argument("--node", required=True, help="the node this consumer belongs to")
    parser.add_argument("--tier", action="append", required=True, type=Tier, dest="tiers")
    parser.add_argument("--concurrency", type=int, required=True, help="sentences at a time")
    parser.add_argument(
        "--host", action="append", required=True, dest="hosts", metavar="ENGINE=SOCKET"
    )
    parser.add_argument("--parent", type=int, help="process id of the node: die when it does")
    args = parser.parse_args()
    die_with_parent(args.parent)
    leave_quickly()
    name = f"{args.node}-{'-'.join(args.tiers)}"
    configure_logging(name)
    settings = Settings()
    sockets = dict(host.split("=", 1) for host in args.hosts)
    hosts = {
        engine: HostLink(Path(socket_path), silence_s=settings.host_silence_s)
        for engine, socket_path in sockets.items()
    }
    app = build_celery(settings)
    with farm_of(settings) as farm:
        database = farm.database
        watch = JobWatch(
            lambda ids: database.read(lambda conn: jobs.still_rendering(conn, ids), patience_s=0)
        )
        register_synth(app, Renderer(farm, hosts, watch).render)
        queues = [tier.queue for tier in args.tiers]
        serve(app, name=name, queues=queues, pool="threads", concurrency=args.concurrency)


if __name__ == "__main__":
    main()
