"""XnnpackBackend: delegated programs in every mode, against eager PyTorch and the official runtime; its options and caches."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

import etude
from etude.cli import main
from etude.emit import program_bytes, read_program
from paths import CORPUS
from test_corpus import compare, prefix, to_value, widen

BACKEND = "XnnpackBackend"
WINDOWS = sys.platform == "win32"
MODE = "workspace_sharing_mode"
CASES = {
    name: case
    for name, case in json.loads((CORPUS / "manifest.json").read_text())["cases"].items()
    if case["group"].startswith("xnnpack") or name.startswith(("x_", "q8_mobilenet"))
}
#: The exporter drops the approximation that the model asked for, so eager PyTorch computes something else.
OTHER_FUNCTION = "x_gelu_tanh"


@pytest.fixture
def registry():
    found = etude.Runtime.get().backend_registry
    with found.option_scope({BACKEND: {MODE: 2}}):
        yield found


def load(name, **options):
    files = CASES[name]["files"]
    return etude.load(CORPUS / files["pte"], data_path=[CORPUS / ptd for ptd in files["ptd"]], **options)


def outputs_of(program, name):
    """(output, golden, official result, spec) for each tensor of all calls of a case."""
    case = CASES[name]
    data = np.load(CORPUS / case["files"]["npz"])
    for method, index in case["calls"]:
        spec, p = case["methods"][method]["sets"][index], prefix(method, index)
        inputs = [to_value(data[f"{p}in{i}"], s) for i, s in enumerate(spec["inputs"])]
        for i, (got, s) in enumerate(zip(program.load_method(method).execute(inputs), spec["outputs"])):
            if s["kind"] == "tensor":
                golden = data[f"{p}out{i}"]
                official = data.get(f"{p}rt{i}", golden)
                yield widen(got, s).copy(), widen(golden, s), widen(official, s)


def close_to_eager(program, name):
    for got, golden, _ in outputs_of(program, name):
        compare(got, golden, **CASES[name]["tolerance"])


@pytest.mark.parametrize("cache", [False, True], ids=["", "cache"])
@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_every_case_in_every_mode(name, threads, mode, cache):
    program = load(name, threads=threads, backend_options={BACKEND: {MODE: mode, "weight_cache_enabled": cache}})
    close_to_eager(program, name)


@pytest.mark.parametrize("name", CASES)
def test_threads_change_no_bit(name):
    alone = [got for got, _, _ in outputs_of(load(name, threads=1), name)]
    for options in ({"threads": 3}, {"threads": 3, "backend_options": {BACKEND: {"num_threads": 2}}}):
        for one, many in zip(alone, [got for got, _, _ in outputs_of(load(name, **options), name)]):
            np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("x_") and name != OTHER_FUNCTION])
def test_floats_are_within_1e_5_of_eager(name):
    for got, golden, _ in outputs_of(load(name), name):
        limit = 1e-3 if name == "x_fp16" else 1e-5  # half precision: eager rounds between operators that are one here
        if golden.dtype.kind == "f" and golden.size:
            assert np.nanmax(np.abs(got - golden)) <= limit * np.nanmax(np.abs(golden))


def test_quantised_results_are_those_of_the_official_runtime(record_property):
    """Nearly all to the bit; what is not passes through functions of floats, and is off by their last places."""
    equal = total = 0
    for name in CASES:
        if not name.startswith("q"):
            continue
        for got, _, official in outputs_of(load(name), name):
            np.testing.assert_allclose(got, official, rtol=1e-6, atol=1e-6)
            equal, total = equal + np.count_nonzero(got == official), total + got.size
    record_property("bit-equal", f"{equal} of {total}")
    assert equal >= 0.95 * total


# ---- what upstream proposed to test, on our API ----


def test_set_the_mode_process_wide_and_read_it_back(registry):
    for mode in (0, 1, 2):
        registry.set_option({BACKEND: {MODE: mode}})
        assert registry.get_option(BACKEND, MODE) == mode
    close_to_eager(load("x_linear"), "x_linear")


def test_load_with_a_mode_of_its_own(registry):
    registry.set_option({BACKEND: {MODE: 0}})
    program = load("x_mlp", backend_options={BACKEND: {MODE: 1}})
    close_to_eager(program, "x_mlp")
    assert program.load_method("forward").explain_option(BACKEND, MODE).value == 1
    assert registry.get_option(BACKEND, MODE) == 0


@pytest.mark.parametrize("mode", [3, -1])
def test_a_mode_that_is_none_is_refused_at_once(registry, mode):
    with pytest.raises(ValueError, match=MODE):
        load("x_linear", backend_options={BACKEND: {MODE: mode}}).load_method("forward")
    with pytest.raises(ValueError, match=MODE):
        registry.set_option({BACKEND: {MODE: mode}})
    assert registry.get_option(BACKEND, MODE) == 2


def test_two_programs_under_different_modes(registry):
    programs = [(name, load(name, backend_options={BACKEND: {MODE: mode}})) for name, mode in (("x_cnn", 1), ("x_mlp", 2), ("q8_cnn", 0))]
    for _ in range(2):
        for name, program in programs:
            close_to_eager(program, name)


def test_other_options_that_are_wrong(registry):
    with pytest.raises(TypeError, match="weight_cache_enabled"):
        registry.set_option({BACKEND: {"weight_cache_enabled": 1}})
    with pytest.raises(KeyError, match=MODE):
        registry.set_option({BACKEND: {"workspace_sharing_mod": 1}})
    with pytest.raises(ValueError, match="num_threads"):
        registry.set_option({BACKEND: {"num_threads": -1}})


# ---- memory ----


def workspace_bytes(registry, mode, *names):
    programs = [load(name, backend_options={BACKEND: {MODE: mode}}) for name in names]
    methods = [program.load_method("forward") for program in programs]
    bytes_now = registry.get_option(BACKEND, "workspace_bytes")
    assert methods
    return bytes_now


def test_sharing_takes_less_memory(registry):
    alone, model, together = (workspace_bytes(registry, mode, "x_vit_tiny", "x_mobilenetv2") for mode in (0, 1, 2))
    assert together < model < alone
    assert registry.get_option(BACKEND, "workspace_bytes") == 0


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("name", CASES)
def test_memory_is_told_before_loading(registry, name, mode):
    for method in load(name).method_names:
        with load(name, backend_options={BACKEND: {MODE: mode}}) as program:
            told = program.memory(method)
            held = program.load_method(method, constant_limit=0)
            loaded = held.memory
            workspace = 0 if mode == 0 else registry.get_option(BACKEND, "workspace_bytes")
            held.close()
        pool = told.delegates - loaded.delegates - workspace  # what manages shared workspaces, and is the runtime's
        assert pool == 0 if mode == 0 or told.delegates == 0 else 0 < pool < 256
        assert told.total >= loaded.total + workspace
        assert told.peak >= loaded.peak + workspace


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("name", ["x_mobilenetv2", "q8_cnn"])
def test_a_limit_counts_what_delegates_take(registry, name, mode):
    registry.set_option({BACKEND: {MODE: mode}})
    with load(name) as program:
        needed = program.memory("forward").total
        program.load_method("forward", memory_limit=needed, constant_limit=0).close()
        with pytest.raises(etude.EtudeMemoryError, match=f"needs {needed} bytes of memory, the limit is {needed - 1}"):
            program.load_method("forward", memory_limit=needed - 1, constant_limit=0)


def test_memory_is_told_of_what_can_be_read():
    program = etude.load(CORPUS / CASES["x_external_weights"]["files"]["pte"])  # without its .ptd
    with pytest.raises(etude.EtudeError):
        program.load_method("forward")
    assert program.memory("forward").delegates == 0
    assert load("x_external_weights").memory("forward").delegates > 0


def test_weights_are_packed_once(registry):
    def packed(*calls):
        kept = [load(name, backend_options={BACKEND: {"weight_cache_enabled": True}}) for name, _ in calls]
        methods = [program.load_method(method) for program, (_, method) in zip(kept, calls)]
        assert methods
        return registry.get_option(BACKEND, "packed_weight_bytes")

    one = packed(("x_two_methods_shared", "four"))
    assert one > 0
    assert packed(("x_two_methods_shared", "four"), ("x_two_methods_shared", "one")) == one
    assert packed(("x_cnn", "forward"), ("x_two_methods_shared", "four")) > one
    assert registry.get_option(BACKEND, "packed_weight_bytes") == 0


def test_equal_names_of_unequal_weights_are_told_apart(registry):
    """Names are of the file's choosing: a program must not get another one's weights by using their names."""
    changed = read_program(CORPUS / "x_linear.pte")
    for key, data in changed.named_data.items():
        changed.named_data[key] = (np.frombuffer(bytes(data), np.float32) * 2).tobytes()
    options = {"backend_options": {BACKEND: {"weight_cache_enabled": True}}}
    original, doubled = load("x_linear", **options), etude.load(program_bytes(changed), **options)
    x = np.random.default_rng(0).random(original.metadata("forward").inputs[0].tensor.sizes(), np.float32)
    first, second = (program.load_method("forward").execute([x])[0].copy() for program in (original, doubled))
    np.testing.assert_allclose(second, 2 * first, rtol=1e-5)


# ---- files of packed weights ----

RUN_CACHED = """
import sys, numpy as np, etude
registry = etude.Runtime.get().backend_registry
program = etude.load(sys.argv[1], backend_options={"XnnpackBackend": {"weight_cache_enabled": True, "packed_cache_path": sys.argv[2]}})
method = program.load_method("forward")
x = np.load(sys.argv[1][:-3] + "npz")["forward__in0"]
print(registry.get_option("XnnpackBackend", "packed_weight_bytes"), method.execute([x])[0].tobytes().hex())
if sys.argv[3] == "save":
    registry.set_option({"XnnpackBackend": {"save_weight_cache_on_disk": True}})
"""


def run_cached(path, save=False):
    """(bytes packed, output) of MobileNetV2 in a process of its own."""
    command = [sys.executable, "-c", RUN_CACHED, str(CORPUS / "q8_mobilenetv2.pte"), str(path), "save" if save else ""]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    packed, output = done.stdout.split()
    return int(packed), output


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("cache") / "packed"
    packed, output = run_cached(path, save=True)
    assert packed > 0 and (WINDOWS or path.stat().st_mode & 0o777 == 0o600)
    return path.read_bytes(), packed, output


def test_a_second_process_packs_nothing(saved, tmp_path):
    path = tmp_path / "packed"
    path.write_bytes(saved[0])
    path.chmod(0o600)
    assert run_cached(path) == (0, saved[2])


def damaged(data, kind):
    """A file that must not be used."""
    if kind == "cut":
        return data[: len(data) // 2]
    if kind == "empty":
        return b""
    if kind == "foreign":
        return b"XWPC" + data[4:]
    if kind == "other version":
        return data[:8] + struct.pack("<I", 99) + data[12:]
    if kind == "other build":
        return data[:32] + b"9.9.9" + data[37:]
    if kind == "entries without end":
        return data[:12] + struct.pack("<I", 0xFFFFFFFF) + data[16:]
    if kind == "an offset that leads outside":
        return data[:64] + data[64 : 64 + 240] + struct.pack("<Q", 1 << 62) + data[64 + 248 :]
    middle = 64 if kind == "a bit of the table" else len(data) - 5000
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


@pytest.mark.parametrize(
    "kind",
    [
        "cut", "empty", "foreign", "other version", "other build", "entries without end", "an offset that leads outside",
        "a bit of the table", "a bit of the weights",
    ],
)
def test_files_that_are_not_trusted(saved, tmp_path, kind):
    path = tmp_path / "packed"
    path.write_bytes(damaged(saved[0], kind))
    path.chmod(0o600)
    is_ours = path.read_bytes()[:8] == saved[0][:8]
    packed, output = run_cached(path, save=is_ours)
    assert packed > 0 and output == saved[2]
    if is_ours:
        assert run_cached(path) == (0, saved[2])  # it was written anew


@pytest.mark.skipif(WINDOWS, reason="the access list of the folder says who may write")
def test_a_file_that_others_may_write_to_is_not_used(saved, tmp_path):
    path = tmp_path / "packed"
    path.write_bytes(saved[0])
    path.chmod(0o666)
    packed, output = run_cached(path)
    assert packed == saved[1] and output == saved[2]


def test_a_place_that_cannot_be_written(registry, tmp_path):
    options = {"weight_cache_enabled": True, "packed_cache_path": str(tmp_path / "no" / "where")}
    program = load("x_linear", backend_options={BACKEND: options})
    method = program.load_method("forward")
    with pytest.raises(OSError, match="where"):
        registry.set_option({BACKEND: {"save_weight_cache_on_disk": True}})
    assert method and os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["model", "empty", "folder", "link to a model", "link to packed weights", "link to nothing"])
def test_what_is_no_file_of_packed_weights_is_not_written_over(registry, saved, tmp_path, kind):
    path, target = tmp_path / "cache", tmp_path / "target"
    content = {"model": (CORPUS / "x_linear.pte").read_bytes(), "empty": b"", "link to packed weights": saved[0]}
    if kind == "folder":
        path.mkdir()
    else:
        (target if kind.startswith("link") else path).write_bytes(content.get(kind, content["model"]))
    target.chmod(0o600) if target.exists() else None
    if kind.startswith("link"):
        path.symlink_to("nothing" if kind.endswith("nothing") else "target")
    before = {file.name: (file.is_symlink(), file.is_file() and file.read_bytes()) for file in tmp_path.iterdir()}
    method = load("x_linear", backend_options={BACKEND: {"weight_cache_enabled": True, "packed_cache_path": str(path)}})["forward"]
    with pytest.raises(OSError, match="cache") as raised:
        registry.set_option({BACKEND: {"save_weight_cache_on_disk": True}})
    assert "packed_cache_path" in str(raised.value) and method
    assert {file.name: (file.is_symlink(), file.is_file() and file.read_bytes()) for file in tmp_path.iterdir()} == before


def test_save_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "packed"
    values = {"weight_cache_enabled": "true", "packed_cache_path": path, "save_weight_cache_on_disk": "true"}
    options = [word for key, value in values.items() for word in ("--option", f"{BACKEND}.{key}={value}")]
    assert main(["run", str(CORPUS / "q8_mobilenetv2.pte"), *options]) == 0
    assert run_cached(path)[0] == 0
    assert "and a shared workspace of " in capsys.readouterr().out
    path.write_bytes(b"something else")
    assert main(["run", str(CORPUS / "q8_mobilenetv2.pte"), *options]) != 0
    assert "packed_cache_path" in capsys.readouterr().err and path.read_bytes() == b"something else"


# ---- threads, shapes, errors ----


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_two_methods_at_once(mode):
    names = ["x_mobilenetv2", "x_resnet_tiny", "q8_mobilenetv2"]
    programs = [load(name, backend_options={BACKEND: {MODE: mode}}) for name in names]
    failures = []

    def work(program, name):
        try:
            for _ in range(5):
                close_to_eager(program, name)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(programs, names)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def changed_payload(name, change):
    """The program of a case with its first payload changed."""
    program = read_program(CORPUS / CASES[name]["files"]["pte"])
    delegate = program.methods[0].delegates[0]
    payload = bytearray(delegate.payload)
    change(payload)
    delegate.payload = bytes(payload)
    return program_bytes(program)


def put(at, data):
    def change(payload):
        payload[at : at + len(data)] = data

    return change


def shorten(payload):
    del payload[20:]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (shorten, "INVALID_ARGUMENT"),
        (put(14, struct.pack("<I", 4)), "INVALID_ARGUMENT"),
        (put(14, struct.pack("<I", 1 << 30)), "INVALID_ARGUMENT"),
        (put(18, struct.pack("<I", 8)), "INVALID_ARGUMENT"),
        (put(36, b"XX01"), "DELEGATE_INCOMPATIBLE"),
        (put(32, struct.pack("<I", 1 << 30)), "DELEGATE_INCOMPATIBLE"),
    ],
)
def test_containers_that_are_wrong(change, status):
    program = etude.load(changed_payload("x_linear", change))
    with pytest.raises(etude.EtudeError) as caught:
        program.load_method("forward")
    assert caught.value.status.name == status and "delegate 0" in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_damaged_payloads_raise_what_is_a_builtin_too():
    """Bytes changed at random, so that statuses of every kind come, those of the nodes' own checks among them."""
    rng, seen = np.random.default_rng(0), set()

    def change(payload):
        for at in rng.integers(len(payload), size=3):
            payload[at] = rng.integers(256)

    for _ in range(150):
        try:
            etude.load(changed_payload("x_linear", change)).load_method("forward")
        except etude.EtudeError as error:
            assert isinstance(error, (ValueError, KeyError, NotImplementedError, MemoryError)), repr(error)
            seen.add(error.status.name)
    assert {"INTERNAL", "DELEGATE_INCOMPATIBLE"} <= seen


def test_a_missing_weight_names_its_key():
    program = read_program(CORPUS / "x_linear.pte")
    program.named_data.clear()
    with pytest.raises(etude.EtudeError) as caught:
        etude.load(program_bytes(program)).load_method("forward")
    assert caught.value.status.name == "NOT_FOUND" and "value" in str(caught.value)
    with pytest.raises(etude.EtudeError) as caught:
        etude.load(program_bytes(program), backend_options={BACKEND: {"weight_cache_enabled": True}}).load_method("forward")
    assert caught.value.status.name == "INVALID_EXTERNAL_DATA"


def test_old_identifier():
    close = etude.load(changed_payload("x_linear", put(36, b"XN00")))
    data = np.load(CORPUS / "x_linear.npz")
    np.testing.assert_allclose(close.load_method("forward").execute([data["forward__in0"]])[0], data["forward__out0"], atol=1e-5)


# ---- sums and clamps that products do ----


@pytest.mark.parametrize("threads", [1, 2])
def test_clamps_of_another_scale_round_once(threads):
    """int8_clamps.pte: relu6, with another scale behind it, of a convolution, a depthwise and a transposed one and a FullyConnected, of
    a convolution that is read twice, and of a sum, which both round twice. The outputs are the official runtime's; rounding always
    twice makes 77 and 37 elements differ."""
    folder = CORPUS.parent / "data" / "xnnpack"
    data = np.load(folder / "int8_clamps.npz")
    outputs = etude.load(folder / "int8_clamps.pte", threads=threads)["forward"](data["x"])
    for i, got in enumerate(outputs):
        np.testing.assert_array_equal(got, data[f"out{i}"])


def test_residual_sums_are_done_by_products(registry):
    """residual.pte: h = a(x) + y; sigmoid(b(tanh(h)) + h), of any number of rows; its weights are in the .npz."""
    folder = CORPUS.parent / "data" / "xnnpack"
    w = np.load(folder / "residual.npz")
    rng = np.random.default_rng(0)
    with etude.load(folder / "residual.pte") as program:
        method = program.load_method("forward")
        for rows, others in [(5, 5), (16, 16), (16, 1), (3, 3), (1, 16), (1, 1), (7, 7)]:  # where a row is repeated, a sum is its own
            x, y = rng.standard_normal((rows, 8), dtype=np.float32), rng.standard_normal((others, 8), dtype=np.float32)
            h = x @ w["a_weight"].T + w["a_bias"] + y
            want = 1 / (1 + np.exp(-(np.tanh(h) @ w["b_weight"].T + w["b_bias"] + h)))
            with etude.profile(method) as p:
                (got,) = method.execute([x, y])
            np.testing.assert_allclose(got, want, atol=1e-6)
            assert sum(row.name == "Add" for row in p.rows) == (rows != others)
