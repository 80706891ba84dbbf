"""The settings reference, generated from the code: `python -m shared.settings_reference`."""

import json
import sys

from pydantic_core import PydanticUndefined, to_jsonable_python

from shared.settings import DEFAULT_TIERS, Settings, TierSettings

_HEAD = """# Settings

Read from the environment by every process; lists and objects are JSON. This page is generated
(`python -m shared.settings_reference > docs/settings.md`) and checked by a test.

| variable | default | meaning |
|---|---|---|
"""


def reference() -> str:
    """The whole page, in Markdown."""
    rows = []
    for name, field in Settings.model_fields.items():
        if name == "data_dir":
            default = "the user's data folder"
        elif name == "tiers":
            default = "see below"
        else:
            default = f"`{_shown(field.get_default(call_default_factory=True))}`"
        rows.append(f"| `VOXFARM_{name.upper()}` | {default} | {field.description or ''} |")
    return _HEAD + "\n".join(rows) + "\n" + _tiers()


def _tiers() -> str:
    names = list(TierSettings.model_fields)
    lines = [
        "",
        "## Tiers",
        "",
        "`VOXFARM_TIERS` replaces all three; a value left out of a tier has its default.",
        "",
        f"| tier | {' | '.join(f'`{name}`' for name in names)} |",
        "|---" * (len(names) + 1) + "|",
    ]
    for tier, settings in DEFAULT_TIERS.items():
        values = settings.model_dump(mode="json")
        lines.append(f"| `{tier}` | {' | '.join(str(values[name]) for name in names)} |")
    lines.append("")
    for name, field in TierSettings.model_fields.items():
        lines.append(f"- `{name}`: {field.description}")
    return "\n".join(lines) + "\n"


def _shown(value: object) -> str:
    if value is PydanticUndefined:
        return ""
    if hasattr(value, "get_secret_value"):
        return "…" if value.get_secret_value() else ""
    plain = to_jsonable_python(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


if __name__ == "__main__":
    sys.stdout.write(reference())
