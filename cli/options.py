"""Options that several commands share, as types. Knows no command."""

from pathlib import Path
from typing import Annotated

import typer

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="VOXFARM_URL",
        metavar="URL",
        help="Address of a running farm, like http://127.0.0.1:8080.",
        show_default=False,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="VOXFARM_API_KEY",
        metavar="KEY",
        help="API key. Default: that of the data folder, for the farm that runs there.",
        show_default=False,
    ),
]
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        envvar="VOXFARM_DATA_DIR",
        metavar="DIR",
        help="Folder of the local farm. Default: voxfarm's folder in your user data.",
        show_default=False,
    ),
]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout; the rest to stderr.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="PATH",
        help="File to write, or folder for several. Default: named after the text, here.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite files that exist.")]
Patience = Annotated[
    float,
    typer.Option(
        "--patience",
        min=0,
        metavar="SECONDS",
        help="How long to keep trying while the farm does not answer.",
    ),
]
Engines = Annotated[
    list[str] | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help="Speech engine of the nodes; may be given again. Default: VOXFARM_ENGINES.",
        show_default=False,
    ),
]
