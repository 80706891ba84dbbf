"""A folder like Kokoro's, with a model of a few hundred bytes in place of the 92 MB.

The model has Kokoro's inputs and output. Its audio is sin(tokens x style / speed), 256 samples a
token, so what went in can be read from what comes out. Written as protobuf by hand, since nothing
here needs a package for the format (onnx.proto names the fields).
"""

import hashlib
import struct
from pathlib import Path

import numpy as np

from worker.engines.base import Samples
from worker.engines.kokoro.presets import presets

ROWS = 510
STYLE_SIZE = 256
_INT64, _FLOAT = 7, 1


def tiny_kokoro(folder: Path) -> Path:
    """Write model, voices and checksums; returns the folder."""
    (folder / "voices").mkdir(parents=True)
    (folder / "model.onnx").write_bytes(tiny_model())
    for at, voice in enumerate(presets()):
        tiny_style(at).tofile(folder / "voices" / f"{voice.id}.bin")
    list_checksums(folder)
    return folder


def list_checksums(folder: Path) -> None:
    """Write SHA256SUMS over what is in the folder now."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in {".onnx", ".bin"})
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}"
        for path in files
    ]
    (folder / "SHA256SUMS").write_text("\n".join(lines) + "\n")


def tiny_style(voice: int) -> Samples:
    """Styles of shape (ROWS, 256) that differ between voices and between lengths."""
    rows = 0.001 * np.arange(1, ROWS + 1, dtype=np.float32)[:, None]
    style: Samples = (rows + np.float32(voice + 1) / 64) * np.ones((1, STYLE_SIZE), np.float32)
    return style


def spoken(ids: list[int], style: Samples, speed: float = 1.0) -> Samples:
    """What the model makes of tokens (without pads), a style of shape (256,) and a speed."""
    padded = np.array([0, *ids, 0], np.float32)[:, None]
    audio: Samples = np.sin(padded @ style[None, :] / np.float32(speed)).reshape(-1)
    return audio


def tiny_model(inputs: tuple[str, str, str] = ("tokens", "style", "speed")) -> bytes:
    """An ONNX model: Cast, Reshape, MatMul, Div, Sin, Reshape."""
    tokens, style, speed = inputs
    nodes = [
        _node("Cast", [tokens], "floats", _attribute("to", _FLOAT)),
        _node("Reshape", ["floats", "column"], "rows"),
        _node("MatMul", ["rows", style], "products"),
        _node("Div", ["products", speed], "paced"),
        _node("Sin", ["paced"], "waves"),
        _node("Reshape", ["waves", "flat"], "audio"),
    ]
    graph = b"".join(_field(1, node) for node in nodes)
    graph += _field(2, b"tiny")
    graph += _field(5, _shape("column", [-1, 1])) + _field(5, _shape("flat", [-1]))
    graph += _field(11, _value(tokens, _INT64, [1, "length"]))
    graph += _field(11, _value(style, _FLOAT, [1, STYLE_SIZE]))
    graph += _field(11, _value(speed, _FLOAT, [1]))
    graph += _field(12, _value("audio", _FLOAT, ["samples"]))
    opset = _field(8, _number(2, 13))
    return _number(1, 8) + _field(7, graph) + opset


def _node(kind: str, inputs: list[str], output: str, attribute: bytes = b"") -> bytes:
    named = b"".join(_field(1, name.encode()) for name in inputs)
    tail = _field(5, attribute) if attribute else b""
    return named + _field(2, output.encode()) + _field(4, kind.encode()) + tail


def _attribute(name: str, value: int) -> bytes:
    return _field(1, name.encode()) + _number(3, value) + _number(20, 2)


def _shape(name: str, values: list[int]) -> bytes:
    raw = struct.pack(f"<{len(values)}q", *values)
    return _number(1, len(values)) + _number(2, _INT64) + _field(8, name.encode()) + _field(9, raw)


def _value(name: str, kind: int, dims: list[int | str]) -> bytes:
    shape = b"".join(
        _field(1, _number(1, one) if isinstance(one, int) else _field(2, one.encode()))
        for one in dims
    )
    tensor = _number(1, kind) + _field(2, shape)
    return _field(1, name.encode()) + _field(2, _field(1, tensor))


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])
