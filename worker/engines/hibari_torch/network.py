"""hibari's network in torch, for batches of mixed length. Knows no text and no audio.

A port of the graph in hibari.onnx: ConvNeXt blocks, one attention layer that is run several times,
a duration and a prosody head, and a decoder that gives a spectrum in five parts. Rows are padded to
the longest and masked wherever a neighbour in time is looked at, so that a row gives the same bits
in any company (on a CPU). Shapes: B rows, L phonemes, T frames of 25 ms, F = 2 T frames of 12.5 ms.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as fn

_HEADS = 2
_NORM_EPS = 1e-5
_PROSODY_DILATIONS = (1, 2, 4, 8, 1, 2)
_DECODER_BLOCKS = 8
_DECODER_ROUNDS, _PROSODY_ROUNDS = 4, 6  # how often the one attention layer is run
_PHONEME_BLOCK = 64  # phonemes are padded to a multiple of this, see _attend
BINS = 601
Weights = Mapping[str, Tensor]


@dataclass(frozen=True, slots=True)
class Spectrum:
    """What the network says of B rows: five parts (B, F, 601), pitch (B, F), frames per row (B)."""

    parts: tuple[Tensor, ...]
    f0_hz: Tensor
    frames: Tensor


class Network:
    """Pure function of its weights; hold it under `torch.inference_mode`."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def __call__(self, ids: Tensor, lengths: Tensor, speed: Tensor) -> Spectrum:
        """Ids (B, L) padded with 0, their lengths (B), speed (B)."""
        ids = fn.pad(ids, (0, -ids.shape[1] % _PHONEME_BLOCK))
        mask = _mask(lengths, ids.shape[1])
        sound = self._text("m.text", ids, mask, _DECODER_ROUNDS)
        shape = self._text("pn.text", ids, mask, _PROSODY_ROUNDS)
        ends = self._durations(shape, mask, speed).cumsum(1)
        frames = ends[:, -1]
        steps = torch.arange(int(frames.max()), device=ids.device).expand(len(ids), -1).contiguous()
        phoneme = torch.searchsorted(ends, steps, right=True).clamp(max=ids.shape[1] - 1)
        coarse = _mask(frames, steps.shape[1])
        f0_hz, energy = self._prosody(_pick(shape, phoneme), coarse)
        fine = _mask(2 * frames, 2 * steps.shape[1])
        parts = self._decode(_pick(sound, phoneme), f0_hz, energy, fine)
        return Spectrum(parts, f0_hz * fine[..., 0], 2 * frames)

    def _text(self, name: str, ids: Tensor, mask: Tensor, rounds: int) -> Tensor:
        w = self._weights
        x = w[f"{name}.emb.weight"][ids]
        for i in range(2):
            x = self._block(f"{name}.convs.{i}", x, mask)
        for _ in range(rounds):
            x = self._attend(f"{name}.attn", x, mask)
        return self._norm(f"{name}.norm", x)

    def _block(self, name: str, x: Tensor, mask: Tensor, dilation: int = 1) -> Tensor:
        """ConvNeXt: depthwise convolution, norm, two linear layers, scaled residual."""
        w = self._weights
        kernel = w[f"{name}.dw.weight"]
        y = fn.conv1d(
            (x * mask).transpose(1, 2),
            kernel,
            w[f"{name}.dw.bias"],
            padding=dilation * (kernel.shape[-1] // 2),
            dilation=dilation,
            groups=kernel.shape[0],
        ).transpose(1, 2)
        y = fn.gelu(self._linear(f"{name}.pw1", self._norm(f"{name}.norm", y)))
        return x + w[f"{name}.gamma"] * self._linear(f"{name}.pw2", y)

    def _attend(self, name: str, x: Tensor, mask: Tensor) -> Tensor:
        """A pre-norm transformer layer without positions."""
        rows, length, width = x.shape
        joint = self._linear(f"{name}.self_attn.in_proj", self._norm(f"{name}.norm1", x))
        q, k, v = (
            part.reshape(rows, length, _HEADS, width // _HEADS).transpose(1, 2)
            for part in joint.chunk(3, dim=-1)
        )
        scores = q @ k.transpose(2, 3) / (width // _HEADS) ** 0.5
        share = scores.masked_fill(mask.reshape(rows, 1, 1, length) == 0, float("-inf")).softmax(-1)
        # Block by block of keys: one product over all of them would add up in an order that depends
        # on their number. A block of padding adds zeros, which change no bit.
        seen = torch.zeros_like(q)
        for at in range(0, length, _PHONEME_BLOCK):
            block = slice(at, at + _PHONEME_BLOCK)
            seen = seen + share[..., block] @ v[:, :, block]
        seen = seen.transpose(1, 2).reshape(rows, length, width)
        x = x + self._linear(f"{name}.self_attn.out_proj", seen)
        y = fn.gelu(self._linear(f"{name}.linear1", self._norm(f"{name}.norm2", x)))
        return x + self._linear(f"{name}.linear2", y)

    def _durations(self, x: Tensor, mask: Tensor, speed: Tensor) -> Tensor:
        """Whole frames of 25 ms per phoneme (B, L), at least one, none for padding."""
        y = fn.gelu(self._conv("pn.dur.0", x * mask))
        w = self._weights
        logs = (y * w["pn.dur.2.weight"].flatten()).sum(-1) + w["pn.dur.2.bias"]
        frames = (logs.exp() - 1) / speed[:, None]
        return (frames.round().clamp(min=1) * mask[..., 0]).long()

    def _prosody(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Pitch in Hz and energy, both (B, F)."""
        x = self._conv("pn.pro_in", x)
        for i, dilation in enumerate(_PROSODY_DILATIONS):
            x = self._block(f"pn.pro.{i}", x, mask, dilation)
        both = self._conv("pn.pro_out", x).unflatten(-1, (2, 2)).flatten(1, 1)
        f0, energy = (both[:, :, i].flatten(1) for i in range(2))
        return f0 * 100, energy * 5

    def _decode(self, x: Tensor, f0_hz: Tensor, energy: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        pitch = (1 + f0_hz.relu()).log() / 5
        hints = torch.stack([pitch, energy / 5], dim=-1)
        joint = torch.cat([x.repeat_interleave(2, dim=1), hints], dim=-1)
        x = self._conv("m.dec_in", joint * mask)
        for i in range(_DECODER_BLOCKS):
            x = self._block(f"m.dec.{i}", x, mask)
        parts: tuple[Tensor, ...] = self._linear("m.head", self._norm("m.dec_norm", x)).split(
            BINS, dim=-1
        )
        return parts

    def _norm(self, name: str, x: Tensor) -> Tensor:
        w = self._weights
        return fn.layer_norm(x, x.shape[-1:], w[f"{name}.weight"], w[f"{name}.bias"], eps=_NORM_EPS)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return fn.linear(x, self._weights[f"{name}.matrix"], self._weights[f"{name}.offset"])

    def _conv(self, name: str, x: Tensor) -> Tensor:
        """A convolution over time as one product, which rounds alike whatever the length."""
        kernel = self._weights[f"{name}.weight"]
        reach = kernel.shape[-1] // 2
        windows = fn.pad(x, (0, 0, reach, reach)).unfold(1, kernel.shape[-1], 1)
        return fn.linear(windows.flatten(2), kernel.flatten(1), self._weights[f"{name}.bias"])


def _mask(lengths: Tensor, width: int) -> Tensor:
    """(B, width, 1): 1 where a row has content, 0 where it is padding."""
    inside = torch.arange(width, device=lengths.device) < lengths[:, None]
    return inside.float()[..., None]


def _pick(x: Tensor, index: Tensor) -> Tensor:
    return x.gather(1, index[..., None].expand(-1, -1, x.shape[-1]))
