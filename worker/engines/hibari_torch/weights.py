"""hibari's weights as torch tensors, from the ONNX file that ships in its package.

The int8 matrices carry no names of their own; they stand in the file in the order in which the
graph uses them, and each belongs to the bias that is added to its product.
"""

from pathlib import Path

import hibari
import numpy as np
import torch

from shared.errors import SetupError
from worker.engines.hibari_torch.network import Weights
from worker.engines.onnx_tensors import read_tensors

_FILE = Path(hibari.__file__).parent / "assets" / "hibari.onnx"
_SUFFIX = "_quantized"


def load_weights(device: torch.device) -> Weights:
    """Float32 weights on `device`. Raises SetupError when the file is not the one expected."""
    tensors = read_tensors(_FILE)
    weights = {
        name: torch.tensor(np.asarray(array, np.float32), device=device)
        for name, array in tensors.items()
        if name.startswith(("m.", "pn."))
    }
    matrices = [name.removesuffix(_SUFFIX) for name in tensors if name.endswith(_SUFFIX)]
    layers = list(_layers())
    if len(matrices) != len(layers):
        raise _wrong_model()
    for matrix, (layer, bias) in zip(matrices, layers, strict=True):
        whole = tensors[f"{matrix}{_SUFFIX}"].astype(np.float32)
        scale, zero = tensors[f"{matrix}_scale"], tensors[f"{matrix}_zero_point"]
        real = (whole - zero.astype(np.float32)) * scale.astype(np.float32)
        weights[f"{layer}.matrix"] = torch.tensor(real.T.copy(), device=device)
        weights[f"{layer}.offset"] = weights[bias]
        if len(weights[bias]) != real.shape[1]:
            raise _wrong_model()
    return weights


def _wrong_model() -> SetupError:
    mend = "pip install --force-reinstall hibari-tts==0.2.1"
    return SetupError(f"{_FILE} is not hibari 0.2.1's model: {mend}", mend=mend)


def _layers() -> list[tuple[str, str]]:
    """Linear layers in the file's order, each with the name of its bias."""
    layers: list[tuple[str, str]] = []

    def add(*names: str) -> None:
        layers.extend((name, f"{name}.bias") for name in names)

    def add_blocks(name: str, count: int) -> None:
        for i in range(count):
            add(f"{name}.{i}.pw1", f"{name}.{i}.pw2")

    for text in ("m.text", "pn.text"):
        add_blocks(f"{text}.convs", 2)
        attention = f"{text}.attn"
        layers.append((f"{attention}.self_attn.in_proj", f"{attention}.self_attn.in_proj_bias"))
        add(f"{attention}.self_attn.out_proj", f"{attention}.linear1", f"{attention}.linear2")
    add_blocks("pn.pro", 6)
    add_blocks("m.dec", 8)
    add("m.head")
    return layers
