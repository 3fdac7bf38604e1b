"""Seeded mutants of programs, and the worker process that tries them: `python mutants.py FIRST COUNT PROGRESS FILE…`.

A mutant depends on the file's bytes and its seed alone. The worker writes each seed to PROGRESS before it tries the mutant, so that whoever
started it knows which one crashed or hung. `python mutants.py SEED FILE` tries one and says what came of it.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

INTERESTING = (0, 1, 2, 3, 4, 8, 0x7F, 0xFF, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)


def mutate(data: bytes, seed: int) -> bytes:
    """A damaged copy of `data`: bytes flipped, words overwritten, parts moved, or the end cut off."""
    rng = random.Random(seed)
    mutant = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(len(mutant))
        kind = rng.randrange(10)
        if kind < 4:  # one byte
            mutant[at] = rng.choice((mutant[at] ^ (1 << rng.randrange(8)), rng.randrange(256)))
        elif kind < 7:  # one word, where FlatBuffers has them
            word = rng.choice((rng.choice(INTERESTING), rng.randrange(len(mutant)), rng.randrange(2**32)))
            mutant[at & ~3 : (at & ~3) + 4] = word.to_bytes(4, "little")
        elif kind == 7:  # a word that is off by a little: another offset, size or index
            old = int.from_bytes(mutant[at & ~3 : (at & ~3) + 4], "little")
            mutant[at & ~3 : (at & ~3) + 4] = ((old + rng.choice((-4, -2, -1, 1, 2, 4, 16))) % 2**32).to_bytes(4, "little")
        elif kind == 8:  # a part of the file over another
            size, source = rng.randrange(1, 64), rng.randrange(len(mutant))
            mutant[at : at + size] = mutant[source : source + size]
        else:
            del mutant[at + 1 :]
    return bytes(mutant)


def attempt(data: bytes, verification: int) -> str:
    """Do with `data` all that can be done with a program, within small limits. Returns how far it came.

    Any exception but EtudeError is a bug of the package and comes out.
    """
    import numpy as np

    import etude

    reached = "refused"
    try:
        program = etude.load(data, verification=etude.Verification(verification))
    except etude.EtudeError:
        return reached
    for name in program:
        reached = max(reached, "loaded", key=STAGES.index)
        try:
            meta = program.metadata(name)
            repr(meta), str(meta.memory), program.missing_operators(name), program.segments
            method = program.load_method(name, memory_limit=1 << 26, instruction_limit=20_000)
            inputs = []
            for info in meta.inputs:
                if info.tensor is None:
                    inputs.append(info.value)
                elif info.tensor.nbytes() <= 1 << 22:
                    inputs.append(np.zeros(info.tensor.sizes(), info.tensor.numpy_dtype()))
            for _ in range(2):
                for output in method.execute(inputs):
                    if isinstance(output, np.ndarray):
                        output.tobytes()
            reached = max(reached, "ran", key=STAGES.index)
            state = method.state
            for key in state:
                state[key] = state[key]
            state.reset()
            str(method.memory)
            method.close()
        except etude.EtudeError:
            pass
    program.close()
    return reached


STAGES = ["refused", "loaded", "ran"]


def worker(first: int, count: int, progress: str, files: list[str]) -> None:
    """Try `count` mutants of each file at both verification levels; one line of counts at the end."""
    originals = [Path(f).read_bytes() for f in files]
    counts = dict.fromkeys(STAGES, 0)
    with open(progress, "w") as note:
        for seed in range(first, first + count):
            for file, data in zip(files, originals):
                mutant = mutate(data, seed)
                for verification in (0, 1):
                    note.seek(0)
                    note.write(f"seed {seed}, verification {verification}, {file}\n")
                    note.truncate()
                    note.flush()
                    counts[attempt(mutant, verification)] += 1
    print(" ".join(f"{stage}={number}" for stage, number in counts.items()))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        content = mutate(Path(sys.argv[2]).read_bytes(), int(sys.argv[1]))
        print([attempt(content, level) for level in (0, 1)])
    else:
        worker(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
