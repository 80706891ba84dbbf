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
    fields: dict[int, list[int | memoryview]] = {}
    for number, value in _all_fields(data):
        fields.setdefault(number, []).append(value)
    dims = _whole(fields.get(1, []))
    (kind,) = _whole(fields.get(2, [1]))[-1:]
    name = str(b"".join(_raw(fields.get(8, []))), "utf-8")
    if kind not in _DTYPES:
        raise ValueError(f"tensor {name} has a type this reader does not know")
    if 5 in fields:  # noqa: PLR2004 - small types as varints; a negative one has all 64 bits
        return name, np.array(_whole(fields[5]), np.uint64).astype(_DTYPES[kind]).reshape(dims)
    raw = b"".join(_raw(fields.get(9, fields.get(4, []))))
    array: npt.NDArray[np.generic] = np.frombuffer(raw, _DTYPES[kind])
    return name, array.reshape(dims)


def _whole(values: list[int | memoryview]) -> list[int]:
    """Repeated whole numbers, one by one or packed."""
    return [n for v in values for n in ([v] if isinstance(v, int) else _packed(v))]


def _raw(values: list[int | memoryview]) -> list[bytes]:
    return [bytes(v) for v in values if not isinstance(v, int)]


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
