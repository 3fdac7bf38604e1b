#!/usr/bin/env python3
"""Export a decoder of the size of a small language model, with random weights, by the official llama exporter.

    python bench/decoder_export.py FOLDER              123 M weights beside the embedding's: what bench/decoder.py measures
    python bench/decoder_export.py FOLDER --small      3 M weights: quick enough for a test

Writes float32.pte (portable operators), float32_x.pte (float32, delegated to XNNPACK), 8da4w.pte (4-bit weights in groups of 32,
8-bit activations, delegated, and an embedding of 4 bits), each with caches, llama::update_cache and llama::custom_sdpa, and of dynamic
length; checkpoint.pth and params.json, of which they were made and from which eager PyTorch can build the model. Needs torch, torchao
and executorch.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
from pathlib import Path

#: Grouped-query attention, SwiGLU and RMSNorm as in Llama 3.
LARGE = {
    "dim": 1024,
    "n_layers": 9,
    "n_heads": 16,
    "n_kv_heads": 8,
    "hidden_dim": 2816,
    "vocab_size": 16384,
    "norm_eps": 1e-5,
    "rope_theta": 10000.0,
}
SMALL = {**LARGE, "dim": 256, "n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "hidden_dim": 704, "vocab_size": 1024}

#: What distinguishes the programs: options of backend.xnnpack and of quantization.
PROGRAMS = {
    "float32": ({}, {}),
    "float32_x": ({"enabled": True, "extended_ops": True}, {}),
    "8da4w": ({"enabled": True, "extended_ops": True}, {"qmode": "8da4w", "group_size": 32, "embedding_quantize": "4,32"}),
}


def write_checkpoint(folder, params, window):
    """Random weights that give logits of the order of 1, and the facts of the model, its window among them."""
    import torch
    from executorch.examples.models.llama.llama_transformer import construct_transformer
    from executorch.examples.models.llama.model_args import ModelArgs

    torch.manual_seed(0)
    model = construct_transformer(ModelArgs(**params, max_seq_len=8, max_context_len=8))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(std=1.0 if "embed" in name else weight.shape[1] ** -0.5)
            else:
                weight.uniform_(0.5, 1.5)
    torch.save(model.state_dict(), folder / "checkpoint.pth")
    (folder / "params.json").write_text(json.dumps({**params, "window": window}))
    (folder / "exporter.json").write_text(json.dumps(params))


def configure(folder, window, custom_ops, delegate=None, quantization=None):
    """An LlmConfig of the exporter."""
    from executorch.extension.llm.export.config import llm_config as options

    config = options.LlmConfig()
    config.base.checkpoint, config.base.params = str(folder / "checkpoint.pth"), str(folder / "exporter.json")
    config.base.metadata = '{"get_bos_id": 1, "get_eos_ids": [2]}'
    config.model.use_kv_cache, config.model.use_sdpa_with_kv_cache = True, custom_ops
    config.export.max_seq_length = config.export.max_context_length = window
    for key, value in (delegate or {}).items():
        setattr(config.backend.xnnpack, key, value)
    for key, value in (quantization or {}).items():
        setattr(config.quantization, key, value)
    return config


def eager_model(folder, window):
    """The model in eager PyTorch, float32, with ordinary attention over a cache: call it with tokens and {"input_pos": start}."""
    from executorch.examples.models.llama.model import Llama2Model

    return Llama2Model(configure(folder, window, custom_ops=False)).get_eager_model().eval()


def export(folder, name, window):
    import os

    from executorch.examples.models.llama.export_llama_lib import export_llama

    delegate, quantization = PROGRAMS[name]
    config = configure(folder, window, True, delegate, quantization)
    config.export.output_dir, config.export.output_name = str(folder), f"{name}.pte"
    logging.disable(logging.WARNING)
    here = Path.cwd()
    os.chdir(folder)  # the exporter leaves files where it runs
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            export_llama(config)
    finally:
        os.chdir(here)
    print(f"{name}.pte: {(folder / f'{name}.pte').stat().st_size / 1e6:.1f} MB", flush=True)


def make(folder, small, names=tuple(PROGRAMS)):
    """All of it."""
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    window = 256 if small else 2048
    write_checkpoint(folder, SMALL if small else LARGE, window)
    for name in names:
        export(folder, name, window)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"only these programs, of: {', '.join(PROGRAMS)}")
    args = parser.parse_args()
    make(args.folder, args.small, args.names or PROGRAMS)


if __name__ == "__main__":
    main()
