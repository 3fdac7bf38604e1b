"""Models that see: images become embeddings that stand among those of the tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import etude
from etude.errors import EtudeProgramError, EtudeValueError
from etude.llm._metadata import ModelInfo

Array = np.ndarray[Any, Any]


class Eyes:
    """The methods `token_embedding` and `vision_encoder` of a program whose decoder takes embeddings.

    A row of what an image is seen as has an id below 0, so that it can stand in a list of token ids.
    """

    def __init__(self, program: etude.Program, info: ModelInfo) -> None:
        """Load the methods that are there. EtudeProgramError without `token_embedding`."""
        names = program.method_names
        if "token_embedding" not in names:
            raise EtudeProgramError("the decoder takes embeddings, and the program has no method 'token_embedding' to make them")
        self._embed = program.load_method("token_embedding")
        self._encoder = program.load_method("vision_encoder") if "vision_encoder" in names else None
        tensor = self._embed.metadata.inputs[0].tensor
        if tensor is None or len(tensor.sizes()) != 2:
            raise EtudeProgramError(f"method 'token_embedding' should take ids [1, length], takes {self._embed.metadata.inputs[0]}")
        self._tokens = tensor
        self._info = info
        self._seen: dict[int, Array] = {}  # rows by id
        self._images: dict[bytes, list[int]] = {}  # ids by pixels

    def knows(self, token: int) -> bool:
        """Is this the id of a part of an image?"""
        return token in self._seen

    def look(self, image: Array) -> list[int]:
        """Ids for an image: uint8 [height, width, 3], which is resized and normalised, or what the encoder takes, as it is."""
        if self._encoder is None:
            raise EtudeValueError("the prompt has an image, and the program has no method 'vision_encoder'")
        wanted = self._encoder.metadata.inputs[0].tensor
        if wanted is None:
            raise EtudeProgramError("method 'vision_encoder' should take a tensor of pixels")
        pixels = prepare(image, wanted.sizes(), self._info) if image.dtype == np.uint8 and image.ndim == 3 else image
        pixels = pixels.reshape((1,) * (len(wanted.sizes()) - pixels.ndim) + pixels.shape).astype(wanted.numpy_dtype())
        key = pixels.tobytes()
        if key not in self._images:
            rows = np.asarray(self._encoder.execute([pixels])[0])
            rows = rows.reshape(-1, rows.shape[-1])
            first = -1 - len(self._seen)
            self._images[key] = [first - i for i in range(len(rows))]
            self._seen.update(zip(self._images[key], rows))
        return self._images[key]

    def embed(self, ids: Sequence[int]) -> Array:
        """Embeddings [count, width] of tokens and parts of images."""
        rows: list[Array] = []
        at = 0
        while at < len(ids):
            if ids[at] < 0:
                rows.append(self._seen[ids[at]][None])
                at += 1
                continue
            end = at
            while end < len(ids) and ids[end] >= 0 and end - at < self._tokens.sizes()[1]:
                end += 1
            if not self._tokens.is_dynamic():
                end = at + min(end - at, 1) if self._tokens.sizes()[1] == 1 else end
            made = np.asarray(self._embed.execute([np.asarray(ids[at:end]).astype(self._tokens.numpy_dtype())[None]])[0])
            rows.append(made.reshape(-1, made.shape[-1]))
            at = end
        return np.concatenate(rows)


def prepare(image: Array, sizes: Sequence[int], info: ModelInfo) -> Array:
    """Pixels [1, 3, height, width] of an image [height, width, 3] of bytes: resized (bilinear), and normalised by the mean and
    deviation that the program's metadata has (0.5 and 0.5 where it has none).
    """
    if image.shape[2] != 3:
        raise EtudeValueError(f"an image of bytes must be [height, width, 3], not {list(image.shape)}")
    height, width = sizes[-2:]
    resized = _resize(_resize(image.astype(np.float64), height, 0), width, 1)
    mean = np.array(info.constants.get("image_mean") or (0.5,) * 3, np.float64)
    deviation = np.array(info.constants.get("image_std") or (0.5,) * 3, np.float64)
    return np.asarray(((resized / 255 - mean) / deviation).transpose(2, 0, 1)[None], np.float32)


def _resize(image: Array, size: int, axis: int) -> Array:
    """Linear along one axis, half pixels aligned; smaller sizes average what a pixel covers."""
    length = image.shape[axis]
    scale = max(1.0, length / size)
    centres = (np.arange(size) + 0.5) * length / size - 0.5
    weights = np.maximum(0, 1 - np.abs(np.arange(length)[None] - centres[:, None]) / scale)
    weights /= weights.sum(1, keepdims=True)
    return np.moveaxis(np.tensordot(weights, np.moveaxis(image, axis, 0), 1), 0, axis)
