"""From hibari's spectrum to samples, for batches of mixed length. Knows no network.

A port of hibari's signal processing: a band-limited pulse train at the predicted pitch is shaped by
the harmonic part of the spectrum, noise by the second, a part with free phase is added, and one
inverse STFT gives the waveform (n_fft 1200, hop 300, Hann, 24 kHz). Every row ends where its own
frames end, edges included, so it sounds as it does alone.
"""

import math

import torch
from torch import Tensor

from worker.engines.hibari_torch.network import Spectrum

RATE_HZ, N_FFT, HOP = 24_000, 1_200, 300
_HOPS = N_FFT // HOP
_VOICED_HZ = 40.0
_TOP_HZ = 11_000.0
_LOUDEST = 7.0  # the logarithm at which a magnitude is capped
_SINGULAR = 2e-3


def synthesize(spectrum: Spectrum, noise: Tensor) -> list[Tensor]:
    """One waveform a row, 300 samples a frame; `noise` (B, F, 601) is unit complex Gaussian."""
    harmonic, angle, rough, free, phase = spectrum.parts
    window = _hann(harmonic.device)
    source = _stft(_pulses(spectrum.f0_hz, spectrum.frames), spectrum.frames, window)
    shaped = source * torch.polar(_magnitude(harmonic), math.pi * angle.tanh())
    shaped = shaped + noise * _magnitude(rough) + torch.polar(_magnitude(free), phase)
    samples = _overlap_add(shaped, spectrum.frames, window)
    return [row[: int(n) * HOP] for row, n in zip(samples, spectrum.frames, strict=True)]


def _hann(device: torch.device) -> Tensor:
    return torch.hann_window(N_FFT, periodic=True, device=device)


def _magnitude(logarithm: Tensor) -> Tensor:
    return logarithm.clamp(max=_LOUDEST).exp()


def _pulses(f0_hz: Tensor, frames: Tensor) -> Tensor:
    """Every harmonic below 11 kHz at unit amplitude, (B, F * 300); silent where unvoiced.

    The sum of cos(h t) for h = 1 .. H is sin((H + 1/2) t) / (2 sin(t / 2)) - 1/2.
    """
    rows, count = f0_hz.shape
    at = torch.arange(count, device=f0_hz.device)
    following = f0_hz.gather(1, (at + 1).minimum(frames[:, None] - 1).clamp(min=0))
    before = torch.cat([f0_hz[:, :1], f0_hz[:, :-1]], dim=1)
    share = ((torch.arange(HOP, device=f0_hz.device) + 0.5) / HOP - 0.5) % 1.0
    half = HOP // 2
    here = f0_hz[..., None]
    hz = torch.cat(
        [
            before[..., None] * (1 - share[:half]) + here * share[:half],
            here * (1 - share[half:]) + following[..., None] * share[half:],
        ],
        dim=-1,
    ).reshape(rows, -1)
    voiced = hz > _VOICED_HZ
    hz = hz.clamp(min=_VOICED_HZ)
    turns = (hz.double().cumsum(1) / RATE_HZ).frac()
    angle = (turns * (2 * math.pi)).float()
    order = (_TOP_HZ / hz).floor() + 0.5
    below = 2 * (angle / 2).sin()
    singular = below.abs() <= _SINGULAR
    pulses = torch.where(singular, order, (order * angle).sin() / below.masked_fill(singular, 1.0))
    return (pulses - 0.5) * voiced


def _stft(signal: Tensor, frames: Tensor, window: Tensor) -> Tensor:
    """Spectrum (B, F, 601) of a signal that is mirrored at both ends of each row."""
    last = frames[:, None] * HOP - 1
    at = torch.arange(signal.shape[1] + N_FFT, device=signal.device) - N_FFT // 2
    mirrored = at.abs().expand(len(signal), -1)
    mirrored = torch.where(mirrored > last, 2 * last - mirrored, mirrored)
    padded = signal.gather(1, mirrored.clamp(min=0))
    cut = padded.unfold(1, N_FFT, HOP)[:, : signal.shape[1] // HOP]
    return torch.fft.rfft(cut * (window / (N_FFT / 4)), dim=-1)


def _overlap_add(spectrum: Tensor, frames: Tensor, window: Tensor) -> Tensor:
    """Waveforms (B, F * 300), each normalised by the windows of its own frames."""
    rows, count, _ = spectrum.shape
    inside = torch.arange(count, device=spectrum.device) < frames[:, None]
    pieces = torch.fft.irfft(spectrum, n=N_FFT, dim=-1) * window
    pieces = pieces.reshape(rows, count, _HOPS, HOP) * inside[..., None, None]
    weights = (window * window).reshape(_HOPS, HOP) * inside[..., None, None]
    total, norm = (pieces.new_zeros(rows, count + _HOPS - 1, HOP) for _ in range(2))
    for k in range(_HOPS):
        total[:, k : k + count] += pieces[:, :, k]
        norm[:, k : k + count] += weights[:, :, k]
    samples = total / norm.clamp(min=1e-11)
    return samples.reshape(rows, -1)[:, N_FFT // 2 : N_FFT // 2 + count * HOP]
