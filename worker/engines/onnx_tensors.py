"""Reads the named tensors out of an ONNX file. Knows of protobuf only what that takes.

So an engine that only wants weights needs no package for a format of which it uses three fields.
Source: onnx.proto (ModelProto.graph = 7, GraphProto.initializer = 5, TensorProto.dims = 1,
data_type = 2, float_data = 4, int32_data = 5, name = 8, raw_data = 9).
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

_DTYPES: dict[int, np.dtype[np.generic]] = {
    1: np.dtype("<f4"),
    2: np.dtype("u1"),
    3: np.dtype("i1"),
    6: np.dtype("<i4"),
    7: np.dtype("<i8"),
}
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def read_tensors(path: Path) -> dict[str, npt.NDArray[np.generic]]:
    """All initialisers by name, in file order. Raises ValueError for a file that is not ONNX."""
    tensors = {}
    try:
        for graph in _fields(memoryview(path.read_bytes()), 7):
            for tensor in _fields(graph, 5):
                name, array = _tensor(tensor)
                tensors[name] = array
    except IndexError as error:
        raise ValueError(f"{path} ends within a field") from error
    return tensors


def _tensor(data: memoryview) -> tuple[str, npt.NDArray[np.generic]]:
    dims: list[int] = []
    whole: list[int] = []
    name, kind, raw = "", 1, b""
    for number, value in _all_fields(data):
        match number, value:
            case 1, int():
                dims.append(value)
            case 1, memoryview():
                dims += _packed(value)
            case 2, int():
                kind = value
            case 8, memoryview():
                name = str(value, "utf-8")
            case 5, int():
                whole.append(value)
            case 5, memoryview():
                whole += _packed(value)
            case 4 | 9, memoryview():
                raw = bytes(value)
            case _:
                pass
    if kind not in _DTYPES:
        raise ValueError(f"tensor {name} has a type this reader does not know")
    if whole:  # small types may come as a list of varints; a negative one has all 64 bits
        return name, np.array(whole, np.uint64).astype(_DTYPES[kind]).reshape(dims)
    array: npt.NDArray[np.generic] = np.frombuffer(raw, _DTYPES[kind])
    return name, array.reshape(dims)


def _fields(data: memoryview, wanted: int) -> Iterator[memoryview]:
    for number, value in _all_fields(data):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _all_fields(data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, value
        elif wire == _BYTES:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise IndexError
            yield number, data[at : at + length]
            at += length
        elif wire in (_FIXED32, _FIXED64):
            at += 4 if wire == _FIXED32 else 8
        else:
            raise ValueError("not a protobuf message")


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the bit that says more follows
            return value, at
        shift += 7


def _packed(data: memoryview) -> list[int]:
    values, at = [], 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values
