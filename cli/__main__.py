"""Lets `python -m cli` be the `voxfarm` command, also where no script is installed."""

from cli.main import run

run()
