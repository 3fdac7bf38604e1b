"""Whisper with its real weights: a spoken sentence, transcribed by etude as by eager PyTorch."""

from __future__ import annotations

import sys
import wave
from pathlib import Path

import numpy as np
import torch

from etude.llm import Transcriber
from etude.llm.features import log_mel

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import whisper_export

SPEECH = Path(__file__).resolve().parents[1] / "llm/speech.wav"


def listen(encoder, decoder, features, prompt):
    """Tokens of eager PyTorch, greedily."""
    tokens = [whisper_export.START, *prompt]
    with torch.no_grad():
        states = encoder(torch.from_numpy(features))
        for position in range(100):
            logits = decoder(torch.tensor([[tokens[position]]]), states, torch.tensor([position]))
            if position == len(tokens) - 1:
                tokens.append(int(logits.argmax()))
                if tokens[-1] == whisper_export.END:
                    break
    return tokens[1 + len(prompt) :]


def test_a_spoken_sentence(tmp_path):
    with wave.open(str(SPEECH)) as file:
        sound = np.frombuffer(file.readframes(file.getnframes()), np.int16).astype(np.float32) / 32768
    whisper_export.make(tmp_path)
    listener = Transcriber(tmp_path / "whisper.pte", tokenizer=tmp_path / "tokenizer.json")
    assert (listener.bands, listener.frames, listener.seconds) == (80, 3000, 30)
    heard = listener.transcribe(sound)
    assert "quick brown fox jumps over the lazy dog" in heard.text and "small machines now" in heard.text
    silent = listener.tokenizer.encode("<|notimestamps|>", bos=False)
    assert heard.token_ids == listen(*whisper_export.models(), log_mel(sound, 80, 3000), silent)
    timed = listener.transcribe(sound, timestamps=True)
    assert timed.segments and timed.segments[0].start < 1 < timed.segments[-1].end < 7
    assert "quick brown fox" in timed.segments[0].text
