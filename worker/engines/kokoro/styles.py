"""Voices as arrays: a style for each length of text, alone or mixed by weight. Knows no model."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from shared.errors import SetupError, UtteranceError
from shared.voices import EngineInfo

STYLE_SIZE = 256
Style = npt.NDArray[np.float32]


def read_styles(files: Mapping[str, Path]) -> dict[str, Style]:
    """By voice id an array (lengths, 256): row n is the style of a text of n phonemes.

    SetupError when a file is no such array.
    """
    styles = {}
    for voice, path in files.items():
        values = np.fromfile(path, np.dtype("<f4"))
        if not values.size or values.size % STYLE_SIZE or not np.isfinite(values).all():
            raise SetupError(f"{path} holds no voice of {STYLE_SIZE} numbers a row: fetch it anew")
        styles[voice] = values.astype(np.float32).reshape(-1, STYLE_SIZE)
    return styles


def style_of(voice: str, phonemes: int, styles: Mapping[str, Style], info: EngineInfo) -> Style:
    """The style, shape (1, 256), in which a voice or a blend says so many phonemes."""
    mixed = info.blend(voice)
    if mixed is None:
        raise UtteranceError(f"there is no voice {voice!r}")
    rows = [
        np.float32(share) * styles[one.id][min(phonemes, len(styles[one.id]) - 1)]
        for one, share in mixed
    ]
    style: Style = np.sum(rows, axis=0, dtype=np.float32).reshape(1, STYLE_SIZE)
    return style
