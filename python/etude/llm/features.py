"""Log-mel features of speech, as Whisper has them, with numpy alone.

The definition is that of Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision" (2022), and its
published code: 16 kHz, a Hann window of 400 samples every 160, 80 or 128 mel bands of Slaney's scale, logarithms cut off
8 decades below the loudest, and brought to about -1 to 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from etude.errors import EtudeValueError

Array = np.ndarray[Any, Any]

SAMPLE_RATE = 16_000
_WINDOW, _STEP = 400, 160


def mel_filters(bands: int) -> Array:
    """The weights [bands, 201] of the mel bands on the bins of the spectrum; triangles of equal area (Slaney's)."""
    bins = np.linspace(0, SAMPLE_RATE / 2, _WINDOW // 2 + 1)
    edges = _hertz(np.linspace(_mel(np.array(0.0)), _mel(np.array(SAMPLE_RATE / 2)), bands + 2))
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    triangles = np.maximum(0, np.minimum(rising, falling))
    return np.asarray(triangles * (2 / (edges[2:] - edges[:-2]))[:, None])


def _mel(hertz: Array) -> Array:
    linear = hertz * 3 / 200
    return np.asarray(np.where(hertz >= 1000, 15 + np.log(np.maximum(hertz, 1e-9) / 1000) * 27 / np.log(6.4), linear))


def _hertz(mel: Array) -> Array:
    return np.asarray(np.where(mel >= 15, 1000 * np.exp((mel - 15) * np.log(6.4) / 27), mel * 200 / 3))


def log_mel(sound: Array, bands: int, frames: int) -> Array:
    """Features [1, bands, frames], float32, of mono sound at 16 kHz in -1 to 1; filled up with silence, or cut off."""
    samples = np.asarray(sound)
    if samples.ndim != 1 or samples.dtype.kind != "f":
        raise EtudeValueError(f"sound must be one channel of floats from -1 to 1 at 16 kHz, not {samples.dtype} {list(samples.shape)}")
    wanted = frames * _STEP
    padded = np.zeros(wanted)
    padded[: min(wanted, samples.size)] = samples[:wanted]
    padded = np.pad(padded, _WINDOW // 2, mode="reflect")
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_WINDOW) / _WINDOW)
    pieces = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_STEP][:frames]
    power = np.abs(np.fft.rfft(pieces * window, axis=-1)) ** 2
    levels = np.log10(np.maximum(power @ mel_filters(bands).T, 1e-10))
    levels = np.maximum(levels, levels.max() - 8)
    return np.asarray(((levels + 4) / 4).T[None], np.float32)
