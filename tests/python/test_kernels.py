"""Kernels written in Python: what they are given, what they may do, how they fail, and where they are known."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import etude
from backend_kit import DATA, compile_plugin, run_threads
from etude.emit import ProgramBuilder, spec
from paths import ROOT

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = A * 3 - 4


@pytest.fixture
def runtime():
    return etude.Runtime()


def build(runtime, make):
    """A program whose one method is what `make(m)` puts together."""
    builder = ProgramBuilder()
    m = builder.method("forward")
    make(m)
    return runtime.load_program(builder.to_bytes())


def blend(context, a, b, weight, out):
    out[...] = a + (b - a) * weight


def with_kernel(runtime, function, *, out=("float32", (2, 3)), name="my::op.out", extra=(), **options):
    """Call `function` as the only instruction, on one float input [2, 3]; returns what comes out."""
    etude.kernel(name, runtime=runtime, **options)(function)
    program = build(runtime, lambda m: m.output(m.call(name, m.input("float32", [2, 3]), *extra, out=out, custom=True)))
    return program["forward"](A)[0]


# ---- numbers ----


def test_a_kernel_computes(runtime):
    decorated = etude.kernel("my::blend.out", runtime=runtime)(blend)
    assert decorated is blend  # it can be called by hand as before
    program = runtime.load_program(DATA / "kernels.pte")
    for a, b in ((A, B), (B, A)):
        np.testing.assert_array_equal(program["blend"](a, b)[0], a + (b - a) * np.float32(0.25))


def test_the_process_wide_runtime():
    name = "my_process::double.out"
    etude.kernel(name)(lambda context, x, out: np.copyto(out, x * 2))
    builder = ProgramBuilder()
    m = builder.method("forward")
    m.output(m.call(name, m.input("float32", [2, 3]), out=("float32", (2, 3)), custom=True))
    with etude.load(builder.to_bytes()) as program:
        np.testing.assert_array_equal(program(A)[0], A * 2)
    etude.Runtime.get().operator_registry.unregister(name)


def test_arguments_of_every_kind(runtime):
    seen = []

    def kernel(context, x, number, whole, truth, words, nothing, numbers, wholes, truths, tensors, out):
        seen.append((context.operator, number, whole, truth, words, nothing, numbers, wholes, truths, [t.shape for t in tensors]))
        assert type(whole) is int and type(truth) is bool and type(number) is float
        assert not x.flags.writeable and not tensors[0].flags.writeable and out.flags.writeable
        out[...] = x + sum(t.sum() for t in tensors)

    etude.kernel("my::all.out", runtime=runtime)(kernel)
    c = np.full((2, 2), 0.5, np.float32)

    def make(m):
        x = m.input("float32", [2, 3])
        arguments = (x, 1.5, 7, True, "größer", None, [0.5, 2.0], [3, 4], [True, False], [m.constant(c), x])
        m.output(m.call("my::all.out", *arguments, out=("float32", (2, 3)), custom=True))

    np.testing.assert_array_equal(build(runtime, make)["forward"](A)[0], A + 2 + A.sum())
    assert seen == [("my::all.out", 1.5, 7, True, "größer", None, [0.5, 2.0], [3, 4], [True, False], [(2, 2), (2, 3)])]


def test_several_results(runtime):
    @etude.kernel("my::minmax.out", runtime=runtime)
    def minmax(context, x, low, high):
        low[...], high[...] = x.min(1), x.max(1)

    def make(m):
        outs = [("float32", (2,)), ("float32", (2,))]
        m.output(*m.call("my::minmax.out", m.input("float32", [2, 3]), out=outs, custom=True))

    low, high = build(runtime, make)["forward"](A)
    np.testing.assert_array_equal(low, A.min(1))
    np.testing.assert_array_equal(high, A.max(1))


@pytest.mark.parametrize("answer", [3, True, 2.5, np.int64(4), np.float32(0.5), np.bool_(False)])
def test_a_kernel_that_computes_a_number(runtime, answer):
    """Its result is the last argument, and goes on into another operator."""
    etude.kernel("my::number", number=True, runtime=runtime)(lambda context, x: answer)
    seen = []

    @etude.kernel("my::use.out", runtime=runtime)
    def use(context, x, number, out):
        seen.append(number)
        out[...] = x * number

    def make(m):
        x, number = m.input("float32", [2, 3]), m.variable(0)
        m.call("my::number", x, number, custom=True)
        m.output(m.call("my::use.out", x, number, out=("float32", (2, 3)), custom=True))

    np.testing.assert_array_equal(build(runtime, make)["forward"](A)[0], A * answer)
    assert seen == [answer] and isinstance(seen[0], type(np.asarray(answer).item()))


def test_a_shape_that_is_computed(runtime):
    @etude.kernel("my::positive.out", runtime=runtime)
    def positive(context, x, out):
        found = x[x > 0]
        out = context.resize(1, found.shape)
        out[...] = found

    def make(m):
        m.output(m.call("my::positive.out", m.input("float32", [2, 3]), out=spec("float32", (6,), dynamic=True), custom=True))

    method = build(runtime, make)["forward"]
    for x in (A, -A, A - 2, A):
        np.testing.assert_array_equal(method(x)[0], x[x > 0])


def test_an_operator_without_a_result(runtime):
    seen = []

    @etude.kernel("my::look", runtime=runtime)
    def look(context, x):
        assert not x.flags.writeable
        seen.append(x.sum())

    def make(m):
        x = m.input("float32", [2, 3])
        m.call("my::look", x, custom=True)
        m.output(x)

    build(runtime, make)["forward"](A)
    assert seen == [A.sum()]


def test_other_strides(runtime):
    def kernel(context, x, out):
        assert x.strides == (4, 8)
        out[...] = x[:, ::-1]

    etude.kernel("my::op.out", runtime=runtime)(kernel)

    def make(m):
        x = m.input("float32", [2, 3], dim_order=(1, 0))
        m.output(m.call("my::op.out", x, out=spec("float32", (2, 3)), custom=True))

    np.testing.assert_array_equal(build(runtime, make)["forward"](A)[0], A[:, ::-1])


# ---- failures ----


class Oops(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "kind"),
    [
        (Oops("no good"), etude.EtudeBackendError),
        (ValueError("no good"), etude.EtudeBackendError),
        (MemoryError("no good"), MemoryError),
        (etude.EtudeStateError("no good"), etude.EtudeStateError),
    ],
)
def test_exceptions(runtime, raised, kind):
    def kernel(context, x, out):
        raise raised

    with pytest.raises(kind, match=r"method 'forward', instruction 0 \(my::op.out\).*no good") as caught:
        with_kernel(runtime, kernel)
    assert caught.value.__cause__ is raised
    assert caught.value.subject == "my::op.out"


def test_an_interrupt_is_raised_itself(runtime):
    def kernel(context, x, out):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        with_kernel(runtime, kernel)


def test_a_failed_call_does_no_harm_to_the_next(runtime):
    wanted = [True, False, True]

    @etude.kernel("my::blend.out", runtime=runtime)
    def flaky(context, a, b, weight, out):
        if not wanted.pop(0):
            raise Oops("this time")
        out[...] = a

    method = runtime.load_program(DATA / "kernels.pte")["blend"]
    np.testing.assert_array_equal(method(A, B)[0], A)
    with pytest.raises(etude.EtudeBackendError, match="Oops: this time"):
        method(A, B)
    np.testing.assert_array_equal(method(B, A)[0], B)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (lambda context, x: None, "positional argument"),
        (lambda context, x, out: x, "returned an object of type ndarray"),
        (lambda context, x, out: x.__setitem__(0, 1), "read-only"),
        (lambda context, x, out: context.resize(1, (3, 2)), r"\(my::op.out\): the result has sizes \[3, 2\], and .* for \[2, 3\]"),
        (lambda context, x, out: context.resize(0, (3, 2)), "my::op.out"),
        (lambda context, x, out: context.resize(7, (3, 2)), "there is no argument 7; there are 3"),
        (lambda context, x, out: context.resize(-1, (3, 2)), "there is no argument -1"),
        (lambda context, x, out: np.copyto(out, np.zeros((4, 4), np.float32)), "could not broadcast"),
    ],
)
def test_kernels_that_go_wrong(runtime, kernel, words):
    with pytest.raises(etude.EtudeError, match=words):
        with_kernel(runtime, kernel)


def test_a_number_that_is_none():
    def make(m):
        number = m.variable(0)
        m.call("my::number", m.input("float32", [2, 3]), number, custom=True)
        m.output(number)

    for answer in ("x", None, [1], 2**63):
        own = etude.Runtime()
        etude.kernel("my::number", number=True, runtime=own)(lambda context, x, answer=answer: answer)
        with pytest.raises(etude.EtudeError, match="it returned"):
            build(own, make)["forward"](A)


def test_arrays_are_lent(runtime):
    kept = []

    def kernel(context, x, out):
        kept.append(x[1:])
        out[...] = x

    with pytest.raises(etude.EtudeBackendError, match="it keeps an array"):
        with_kernel(runtime, kernel)
    kept.clear()


@pytest.mark.parametrize("constant", [False, True])
def test_inputs_stay_read_only(runtime, constant):
    """What is lent to be read, such as a constant in a mapped file, can't be made writeable; that a view is kept is noticed."""
    tried, kept = [], []

    def kernel(context, x, out):
        for array in (x, x[1:], x.T, x.view(np.uint8)):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
            tried.append(array.flags.writeable)
        out[...] = x
        kept.append(x.T[1:])

    runtime.operator_registry.register("my::copy.out", kernel)
    x = (lambda m: m.constant(A)) if constant else (lambda m: m.input("float32", (2, 3)))
    program = build(runtime, lambda m: m.output(m.call("my::copy.out", x(m), out=("float32", (2, 3)), custom=True)))
    with pytest.raises(etude.EtudeBackendError, match="it keeps an array"):
        program["forward"](*([] if constant else [A]))
    kept.clear()
    assert tried == [False] * 4


def test_a_context_ends_with_its_call(runtime):
    kept = []

    def kernel(context, x, out):
        kept.append(context)
        out[...] = x

    with_kernel(runtime, kernel)
    for call in (lambda: kept[0].operator, lambda: kept[0].resize(1, (2, 3))):
        with pytest.raises(etude.EtudeStateError, match="only good during the call"):
            call()


# ---- registration ----


def test_names_in_use(runtime):
    registry = runtime.operator_registry
    before = registry.operator_names
    registry.register("my::op.out", blend)
    for name in ("my::op.out", "aten::add.out"):
        with pytest.raises(ValueError, match=f"'{name}' is registered already") as caught:
            registry.register(name, blend)
        assert caught.value.subject == name
    assert registry.operator_names == before | {"my::op.out"}
    etude.Runtime().operator_registry.register("my::op.out", blend)  # another runtime does not know of it


@pytest.mark.parametrize(
    ("name", "function", "options", "kind"),
    [
        ("", blend, {}, ValueError),
        ("op.out", blend, {}, ValueError),
        ("::op", blend, {}, ValueError),
        ("my::", blend, {}, ValueError),
        ("my::a\0b", blend, {}, ValueError),
        ("my::" + "x" * 124, blend, {}, ValueError),
        (7, blend, {}, TypeError),
        ("my::op", "function", {}, TypeError),
        ("my::op", blend, {"dtypes": "float32"}, TypeError),
        ("my::op", blend, {"dtypes": ["float33"]}, ValueError),
    ],
)
def test_what_is_no_kernel(runtime, name, function, options, kind):
    before = len(runtime.operator_registry.operator_names)
    with pytest.raises(kind):
        runtime.operator_registry.register(name, function, **options)
    assert len(runtime.operator_registry.operator_names) == before


def test_a_kernel_has_a_name():
    with pytest.raises(TypeError, match=r"@etude\.kernel\('my::op\.out'\)"):

        @etude.kernel
        def forgotten(context, a, out):
            out[...] = a


def test_taking_out(runtime):
    registry = runtime.operator_registry
    registry.register("my::blend.out", blend)
    program = runtime.load_program(DATA / "kernels.pte")
    method = program.load_method("blend", fresh=True)
    with pytest.raises(etude.EtudeStateError, match="1 operators of loaded methods use"):
        registry.unregister("my::blend.out")
    np.testing.assert_array_equal(method(A, A)[0], A)
    method.close()
    registry.unregister("my::blend.out")
    assert "my::blend.out" not in registry
    with pytest.raises(etude.EtudeOperatorError, match=r"my::blend\.out"):
        program.load_method("blend", fresh=True)
    for name in ("my::blend.out", "aten::add.out", "a\0b"):  # gone; not from Python; no name
        with pytest.raises(KeyError, match="no kernel"):
            registry.unregister(name)


def test_a_kernel_goes_with_its_runtime():
    def kernel(context, x, out):
        out[...] = x

    runtime, seen = etude.Runtime(), weakref.ref(kernel)
    runtime.operator_registry.register("my::op.out", kernel)
    del kernel
    gc.collect()
    assert seen() is not None
    del runtime
    gc.collect()
    assert seen() is None


def test_many_threads(runtime):
    etude.kernel("my::blend.out", runtime=runtime)(blend)
    program = runtime.load_program(DATA / "kernels.pte")

    def work():
        method = program.load_method("blend", fresh=True)
        for i in range(200):
            x = A + np.float32(i)
            np.testing.assert_array_equal(method(x, B)[0], x + (B - x) * np.float32(0.25))

    run_threads(*[work] * 4)


# ---- where kernels are known ----


def test_element_types(tmp_path):
    """A kernel that says what it takes: others are known before anything runs, also within a list."""
    for given, listed in ((["float64", "int64"], False), (["bfloat16"], True)):
        runtime = etude.Runtime()
        etude.kernel("my::op.out", dtypes=given, runtime=runtime)(lambda context, x, out: None)

        def make(m, listed=listed):
            x = m.input("float32", [2, 3])
            m.output(m.call("my::op.out", [x, x] if listed else x, out=("bfloat16" if listed else "float64", (2, 3)), custom=True))

        program = build(runtime, make)
        (missing,) = program.missing_operators("forward")
        assert missing.startswith("my::op.out")
        with pytest.raises(etude.EtudeOperatorError, match=r"or not for these types:\n  my::op\.out"):
            program["forward"]
    runtime = etude.Runtime()
    etude.kernel("my::op.out", dtypes=["float32"], runtime=runtime)(lambda context, x, out: np.copyto(out, x))
    method = build(runtime, lambda m: m.output(m.call("my::op.out", m.input("float32", [2, 3]), out=("float32", (2, 3)), custom=True)))
    np.testing.assert_array_equal(method["forward"](A)[0], A)


def test_missing_operators(runtime):
    program = runtime.load_program(DATA / "kernels.pte")
    assert program.missing_operators() == ["my::blend.out (float, float)", "my::count.out (float)"]
    etude.kernel("my::blend.out", runtime=runtime)(blend)
    assert program.missing_operators() == ["my::count.out (float)"]
    assert program.missing_operators("blend") == []
    with pytest.raises(etude.EtudeOperatorError, match=r"my::count.out \(float\)"):
        program.load_method("both")


def etude_cli(*arguments, cwd):
    done = subprocess.run([sys.executable, "-m", "etude", *map(str, arguments)], capture_output=True, text=True, cwd=cwd)
    return done.returncode, done.stdout + done.stderr


MODULE = """
import etude

@etude.kernel("my::blend.out")
def blend(context, a, b, weight, out):
    out[...] = a + (b - a) * weight

etude.kernel("my::count.out")(lambda context, x, out: out.fill(x.size))
"""


@pytest.mark.parametrize("module", ["my_kernels", "my_kernels.py"])
def test_commands_know_modules(tmp_path, module):
    (tmp_path / "my_kernels.py").write_text(MODULE)
    status, text = etude_cli("check", DATA / "kernels.pte", cwd=tmp_path)
    assert status == 1 and "missing operator: my::blend.out (float, float)" in text and "can't run" in text
    status, text = etude_cli("check", DATA / "kernels.pte", "--import", module, cwd=tmp_path)
    assert status == 0 and text.count("can run") == 2, text
    status, text = etude_cli("inspect", DATA / "kernels.pte", cwd=tmp_path)
    assert "operators that this build has not got\n  my::blend.out (float, float)\n  my::count.out (float)" in text
    status, text = etude_cli("inspect", DATA / "kernels.pte", "--import", module, cwd=tmp_path)
    assert status == 0 and "my::blend.out" in text and "has not got" not in text
    for threads in (1, 2):
        status, text = etude_cli("run", DATA / "kernels.pte", "--import", module, "--method", "both", "--threads", threads, cwd=tmp_path)
        assert status == 0 and "output 0: int64 [1]" in text, text


def test_commands_know_plugins(tmp_path):
    source = tmp_path / "kernel_plugin.c"
    source.write_text("#define KERNEL_PLUGIN 0\n" + (ROOT / "tests/c/kernel_plugin.c").read_text())
    plugin = compile_plugin(source, tmp_path / "kernel_plugin.so")
    library = etude.Runtime().backend_registry.load_library(plugin)
    assert library.backends == () and library.operators == ("my::blend.out", "my::blend_too.out")
    assert "my::blend.out" in repr(library)
    status, text = etude_cli("check", DATA / "kernels.pte", "--library", plugin, cwd=tmp_path)
    assert status == 1 and "blend: can run" in text and "missing operator: my::count.out (float)" in text
    status, text = etude_cli("inspect", DATA / "kernels.pte", "--library", plugin, cwd=tmp_path)
    assert "operators that this build has not got\n  my::count.out (float)" in text and "  my::blend.out" not in text


def test_a_plugin_in_python(tmp_path):
    source = tmp_path / "kernel_plugin.c"
    source.write_text("#define KERNEL_PLUGIN 0\n" + (ROOT / "tests/c/kernel_plugin.c").read_text())
    runtime = etude.Runtime()
    library = runtime.backend_registry.load_library(compile_plugin(source, tmp_path / "own.so"))
    method = runtime.load_program(DATA / "kernels.pte")["blend"]
    np.testing.assert_allclose(method(A, B)[0], A + (B - A) * 0.25 + 0.5 + 4 * 0.25, rtol=1e-6)  # four times the weight, kept at load
    with pytest.raises(etude.EtudeStateError, match="in use by 1 operators"):
        library.unload()
    with pytest.raises(ValueError, match=r"'my::blend\.out' is registered already"):
        runtime.operator_registry.register("my::blend.out", blend)
    with pytest.raises(KeyError, match="from Python"):
        runtime.operator_registry.unregister("my::blend.out")
    method.close()
    library.unload()
    runtime.operator_registry.register("my::blend.out", blend)
