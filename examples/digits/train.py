#!/usr/bin/env python3
"""Train the digit classifier of this example and export it with the official exporter.

    python train.py [OUTDIR]          needs torch, executorch and scikit-learn; half a minute

The data are the 1,797 handwritten digits (8x8 pixels, 16 grey levels) that come with scikit-learn: the test part of the "Optical
Recognition of Handwritten Digits" set of E. Alpaydin and C. Kaynak, UCI Machine Learning Repository. 360 of them are kept out of training.
Writes digits.pte, and digits.npz with the images and labels that were kept out.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from executorch.exir import to_edge
from sklearn.datasets import load_digits
from torch import nn

KEPT_OUT = 360


class Digits(nn.Module):
    """(1, 1, 8, 8) grey values from 0 to 16 -> probabilities (1, 10)."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(512, 32), nn.ReLU(), nn.Linear(32, 10),
        )  # fmt: skip

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        """What training works on."""
        return self.layers(x / 8 - 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """What is exported."""
        return torch.softmax(self.logits(x), 1)


def main() -> None:
    """Train, test, export."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.images))
    images = torch.tensor(data.images[order], dtype=torch.float32)[:, None]
    labels = torch.tensor(data.target[order])
    model = Digits()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 60)
    for _ in range(60):
        for batch in torch.randperm(len(images) - KEPT_OUT).split(64):
            x, y = images[KEPT_OUT:][batch], labels[KEPT_OUT:][batch]
            shift = torch.randint(-1, 2, (2,)).tolist()
            loss = nn.functional.cross_entropy(model.logits(torch.roll(x, shift, (2, 3))), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    model.eval()
    right = (model(images[:KEPT_OUT]).argmax(1) == labels[:KEPT_OUT]).sum().item()
    print(f"{right} of {KEPT_OUT} right")
    program = to_edge(torch.export.export(model, (images[:1],))).to_executorch()
    (out / "digits.pte").write_bytes(program.buffer)
    arrays = {"images": images[:KEPT_OUT, 0], "labels": labels[:KEPT_OUT]}
    np.savez_compressed(out / "digits.npz", **{name: value.numpy().astype(np.uint8) for name, value in arrays.items()})


if __name__ == "__main__":
    main()
