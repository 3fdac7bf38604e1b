#!/usr/bin/env python3
"""Name the notes of a melody with a program of the official exporter, without torch.

    python examples/pitch/pitch.py                  plays a tune on a string that it computes, and names its notes
    python examples/pitch/pitch.py song.wav         names the notes of a recording: whistle, sing or play one note at a time
    arecord -q -f S16_LE -r 16000 -d 5 | python examples/pitch/pitch.py -       what the microphone hears for five seconds

`--save FILE.wav` writes the tune. The network is CREPE's smallest, see export.py.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
import wave
from pathlib import Path

import numpy as np

import etude

HERE = Path(__file__).parent
RATE = 16_000  # samples a second, for which the network was trained
WINDOW = 1024  # samples that it hears at a time
HOP = 320  # samples from one look to the next: 20 ms
BATCH = 16  # windows in one call
BINS = 1997.3794084376191 + 20 * np.arange(360)  # pitches that it tells apart, in cents above 10 Hz
NAMES = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
TUNE = "C4 C4 G4 G4 A4 A4 G4"


def frequency(note: str) -> float:
    """Hertz of a note such as "A4" (440) or "C#5", in equal temperament."""
    return float(440 * 2 ** ((NAMES.index(note[:-1]) + 12 * int(note[-1]) - 57) / 12))


def nearest(hertz: float) -> tuple[str, float]:
    """The nearest note, and how many cents (hundredths of a semitone) above it `hertz` is."""
    steps = 57 + 12 * np.log2(hertz / 440)
    whole = round(steps)
    return f"{NAMES[whole % 12]}{whole // 12}", float(100 * (steps - whole))


def pluck(hertz: float, seconds: float = 0.5) -> np.ndarray:
    """A plucked string: its overtones, the higher the sooner gone."""
    t = np.arange(int(seconds * RATE)) / RATE
    tones = (np.sin(2 * np.pi * k * hertz * t) * np.exp(-2 * k * t) / k for k in range(1, 9) if k * hertz < RATE / 2)
    return 0.3 * sum(tones) * np.minimum(1, 100 * np.minimum(t, t[::-1]))


def read_wav(source: str) -> np.ndarray:
    """The sound of a WAV file of 16 bits ("-" = standard input), its channels mixed, at `RATE`."""
    what = "standard input" if source == "-" else source
    try:
        with wave.open(io.BytesIO(sys.stdin.buffer.read()) if source == "-" else source) as file:
            width, rate, channels = file.getsampwidth(), file.getframerate(), file.getnchannels()
            data = file.readframes(2**31 - 1 if source != "-" else 2**20)
    except OSError as error:
        sys.exit(f"{what}: {error.strerror}")
    except (wave.Error, EOFError) as error:
        sys.exit(f"{what}: no WAV file, or cut short ({error or 'it ends too early'})")
    if width != 2:
        sys.exit(f"{what}: samples have {8 * width} bits, 16 are needed")
    if rate < 1 or len(data) < 2 * channels:
        sys.exit(f"{what}: there is no sound in it")
    sound = np.frombuffer(data[: len(data) // (2 * channels) * 2 * channels], "<i2").reshape(-1, channels).mean(1) / 32768
    return np.interp(np.arange(int(len(sound) * RATE / rate)) * rate / RATE, np.arange(len(sound)), sound)


def write_wav(path: str, sound: np.ndarray) -> None:
    """Write a WAV file of 16 bits."""
    with Path(path).open("wb") as raw, wave.open(raw, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((np.clip(sound, -1, 1) * 32767).astype("<i2").tobytes())


def windows(sound: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the network hears, one row each `HOP` samples, and how loud it is."""
    padded = np.pad(sound, (WINDOW // 2, WINDOW))
    rows = np.lib.stride_tricks.sliding_window_view(padded, WINDOW)[: len(sound) : HOP]
    rows = rows - rows.mean(1, keepdims=True)
    loud = rows.std(1, keepdims=True, ddof=1)
    return (rows / np.maximum(loud, 1e-10)).astype(np.float32), loud[:, 0]


def pitches(network: etude.Method, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each row the pitch in hertz, and how sure the network is of it."""
    likely = np.concatenate([network(rows[i : i + BATCH])[0] for i in range(0, len(rows), BATCH)])
    best = likely.argmax(1)
    near = np.abs(np.arange(360) - best[:, None]) <= 4  # the mean of the bins about the best is finer than a bin
    cents = (likely * near * BINS).sum(1) / (likely * near).sum(1)
    return 10 * 2 ** (cents / 1200), likely.max(1)


def notes(hertz: np.ndarray, sure: np.ndarray, loud: np.ndarray) -> list[tuple[float, float, float]]:
    """(begin and length in seconds, hertz) of each stretch of one note, of at least 100 ms."""
    heard = (sure > 0.5) & (loud > 0.1 * loud.max(initial=1e-4))
    attack = np.r_[False, loud[1:] > 1.5 * loud[:-1]]  # a string that is plucked again
    names = [nearest(h)[0] if ok else "" for h, ok in zip(hertz, heard)]
    found, begin = [], 0
    for i in range(1, len(names) + 1):
        length = i - begin
        if i < len(names) and names[i] == names[begin] and not (attack[i] and length >= 5):
            continue
        if names[begin] and length * HOP >= 0.1 * RATE:
            found.append((begin * HOP / RATE, length * HOP / RATE, float(np.median(hertz[begin:i]))))
        begin = i
    return found


def main() -> None:
    """Listen, and name what is heard."""
    parser = argparse.ArgumentParser(description="Name the notes of a melody.")
    parser.add_argument("wav", nargs="?", help='a recording, or "-" for standard input; without it a tune is played')
    parser.add_argument("--save", metavar="FILE.wav", help="write the sound that was listened to")
    args = parser.parse_args()
    sound = read_wav(args.wav) if args.wav else np.concatenate([pluck(frequency(note)) for note in TUNE.split()])
    if args.save:
        try:
            write_wav(args.save, sound)
        except OSError as error:
            sys.exit(f"{args.save}: {error.strerror}")
    network = etude.load(HERE / "crepe.pte")["forward"]

    start = time.perf_counter()
    rows, loud = windows(sound)
    heard = notes(*pitches(network, rows), loud)
    seconds = time.perf_counter() - start
    for begin, length, hertz in heard:
        name, cents = nearest(hertz)
        print(f"{begin:6.2f} s  {name:<3}  {hertz:7.1f} Hz  {cents:+3.0f} cents  {'=' * round(20 * length)}")
    if not args.wav:
        print(f"The tune was  {TUNE}")
    print(f"{len(heard)} notes in {len(sound) / RATE:.1f} s of sound, heard in {seconds:.2f} s.")


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read has heard enough; what is left must go nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
