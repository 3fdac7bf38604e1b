#!/usr/bin/env python3
"""Read handwritten digits with a program of the official exporter, without torch.

    python examples/digits/digits.py

Shows three digits that the network has not seen in training and what it reads, then reads all 360 and counts.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import etude

HERE = Path(__file__).parent
SHADES = " .:-=+*#%@"


def show(image: np.ndarray) -> str:
    """An 8x8 image of grey values from 0 to 16 as text."""
    return "\n".join("    " + "".join(SHADES[min(int(v) * 10 // 17, 9)] * 2 for v in row) for row in image)


def main() -> None:
    """Load the program, read the digits."""
    data = np.load(HERE / "digits.npz")
    images, labels = data["images"], data["labels"]
    network = etude.load(HERE / "digits.pte")["forward"]

    for image in images[:3]:
        (probabilities,) = network(image.astype(np.float32)[None, None])
        digit = int(probabilities.argmax())
        print(f"{show(image)}\nThis is a {digit}, I am {probabilities[0, digit]:.1%} sure.\n")

    start = time.perf_counter()
    read = [int(network(image.astype(np.float32)[None, None])[0].argmax()) for image in images]
    seconds = time.perf_counter() - start
    right = int((np.array(read) == labels).sum())
    print(f"{right} of {len(labels)} unseen digits read right, {seconds / len(labels) * 1e6:.0f} microseconds each.")


if __name__ == "__main__":
    main()
