"""Weights can be read out of an ONNX file without a package for the format."""

from pathlib import Path

import hibari
import numpy as np
import pytest

from worker.engines.onnx_tensors import read_tensors

MODEL = Path(hibari.__file__).parent / "assets" / "hibari.onnx"


def test_every_tensor_of_the_model_comes_out_with_its_shape() -> None:
    tensors = read_tensors(MODEL)
    assert tensors["m.text.emb.weight"].shape == (178, 128)
    assert tensors["m.dec_in.weight"].shape == (256, 130, 7)
    assert tensors["/head/Transpose_output_0_quantized"].dtype == np.int8
    assert tensors["/head/Transpose_output_0_scale"].shape == ()
    assert 6.1e6 < sum(t.size for t in tensors.values()) < 6.2e6
    assert all(np.isfinite(t).all() for t in tensors.values())


@pytest.mark.parametrize("kept", [0.3, 0.999])
def test_a_file_cut_short_is_an_error_and_not_a_smaller_model(tmp_path: Path, kept: float) -> None:
    whole = MODEL.read_bytes()
    (tmp_path / "cut.onnx").write_bytes(whole[: int(len(whole) * kept)])
    with pytest.raises(ValueError, match="ends within"):
        read_tensors(tmp_path / "cut.onnx")


def test_something_else_is_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "page.onnx").write_bytes(b"<html>not found</html>")
    with pytest.raises(ValueError, match=r"ends within|protobuf"):
        read_tensors(tmp_path / "page.onnx")
