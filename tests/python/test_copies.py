"""Objects that stand for C objects are not copied: a copy would free what the original uses."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

import etude
from paths import PROGRAMS


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("pick", ["program", "method", "state", "runtime"])
def test_refused(way, pick):
    program = etude.load(PROGRAMS / "affine.pte")
    method = program["forward"]
    subject = {"program": program, "method": method, "state": method.state, "runtime": etude.Runtime.get()}[pick]
    with pytest.raises(etude.EtudeTypeError, match="can't be copied or pickled"):
        way(subject)
    with pytest.raises(etude.EtudeTypeError, match="can't be copied or pickled"):
        way([subject, etude.Runtime.get().backend_registry]) if way is not copy.copy else way(subject)
    gc.collect()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert method(x, np.ones_like(x))[0].tolist() == [[1, 3, 5], [7, 9, 11]]
    assert program.load_method("forward", fresh=True)(x, np.ones_like(x))[0].tolist() == [[1, 3, 5], [7, 9, 11]]


def test_what_is_plain_data_is_copied():
    method = etude.load(PROGRAMS / "affine.pte")["forward"]
    for subject in (method.metadata, method.memory, method.metadata.inputs[0]):
        for twin in (copy.copy(subject), copy.deepcopy(subject), pickle.loads(pickle.dumps(subject))):
            assert repr(twin) == repr(subject)
