"""The shipped examples: what they say is true."""

from __future__ import annotations

import importlib.util
import io
import subprocess
import sys
import wave

import numpy as np
import pytest

import etude
from paths import ROOT

PITCH = ROOT / "examples/pitch"


@pytest.fixture(scope="module")
def pitch():
    spec = importlib.util.spec_from_file_location("pitch_example", PITCH / "pitch.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def network():
    return etude.load(PITCH / "crepe.pte")["forward"]


def sine(hertz, t):
    return np.sin(2 * np.pi * hertz * t)


def saw(hertz, t):
    """A sawtooth, by as many overtones as there is room for."""
    return sum(np.sin(2 * np.pi * k * hertz * t) / k for k in range(1, 30) if k * hertz < 8000)


def test_names_of_notes(pitch):
    assert [round(pitch.frequency(n), 2) for n in ("A4", "C4", "A0", "C#5")] == [440, 261.63, 27.5, 554.37]  # equal temperament
    for note in ("C2", "F#3", "A4", "B5"):
        for cents in (-40, 0, 30):
            name, off = pitch.nearest(pitch.frequency(note) * 2 ** (cents / 1200))
            assert name == note and abs(off - cents) < 1e-6


@pytest.mark.parametrize("shape", [sine, saw])
@pytest.mark.parametrize("loudness", [0.01, 0.5])
def test_the_network_hears_what_is_played(pitch, network, shape, loudness):
    """The truth is the frequency that was played; the network is told to be right within an eighth of a tone."""
    t = np.arange(pitch.RATE // 2) / pitch.RATE
    for step in range(0, 40, 3):  # from the low E of a guitar, 82 Hz, over three octaves
        for cents in (0, 35):
            hertz = 82.41 * 2 ** (step / 12 + cents / 1200)
            rows, _ = pitch.windows(loudness * shape(hertz, t))
            heard, sure = pitch.pitches(network, rows[3:-3])
            assert abs(1200 * np.log2(np.median(heard) / hertz)) < 25, hertz
            assert np.median(sure) > 0.5


def test_silence_and_noise_have_no_notes(pitch, network):
    for sound in (np.zeros(16000), 0.1 * np.random.default_rng(0).standard_normal(16000)):
        rows, loud = pitch.windows(sound)
        assert pitch.notes(*pitch.pitches(network, rows), loud) == []


def test_the_tune():
    done = subprocess.run([sys.executable, PITCH / "pitch.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert " ".join(line.split()[2] for line in lines[:7]) == "C4 C4 G4 G4 A4 A4 G4"
    assert lines[7].endswith("C4 C4 G4 G4 A4 A4 G4") and lines[8].startswith("7 notes in 3.5 s")


@pytest.mark.parametrize(("rate", "channels"), [(16000, 1), (44100, 2), (8000, 1)])
def test_recordings(pitch, tmp_path, rate, channels):
    t = np.arange(rate) / rate
    sound = np.concatenate([0.4 * sine(440, t), np.zeros(rate // 4), 0.4 * sine(329.63, t)])
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(np.repeat((sound * 32767).astype("<i2"), channels).tobytes())
    (tmp_path / "song.wav").write_bytes(content.getvalue())
    by_path = subprocess.run([sys.executable, PITCH / "pitch.py", tmp_path / "song.wav"], capture_output=True, text=True)
    by_pipe = subprocess.run([sys.executable, PITCH / "pitch.py", "-"], input=content.getvalue(), capture_output=True)
    for text in (by_path.stdout, by_pipe.stdout.decode()):
        lines = text.splitlines()
        assert [line.split()[2] for line in lines[:-1]] == ["A4", "E4"], (text, by_path.stderr)
        assert abs(float(lines[1].split()[0]) - 1.25) < 0.05


def test_what_is_no_recording_is_told_in_a_line(tmp_path):
    def told(*arguments, stdin=b""):
        done = subprocess.run([sys.executable, PITCH / "pitch.py", *arguments], input=stdin, capture_output=True)
        lines = done.stderr.decode().splitlines()
        assert done.returncode == 1 and len(lines) == 1, done.stderr
        return lines[0]

    empty = io.BytesIO()
    with wave.open(empty, "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
    (tmp_path / "garbage.wav").write_bytes(b"no sound at all, but long enough for a header of a file of sound")
    assert "No such file" in told(tmp_path / "none.wav")
    assert "garbage.wav: no WAV file" in told(tmp_path / "garbage.wav")
    assert told("-").startswith("standard input: no WAV file")
    assert told("-", stdin=empty.getvalue()) == "standard input: there is no sound in it"
    assert "No such file" in told("--save", tmp_path / "none" / "tune.wav")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows tells a reader that goes away by another error")
@pytest.mark.parametrize("example", ["story/story.py", "story/stories.py", "pitch/pitch.py"])
def test_help_and_a_reader_that_goes_away(example):
    command = [sys.executable, ROOT / "examples" / example]
    done = subprocess.run([*command, "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("usage:")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
