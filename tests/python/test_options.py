"""Options from Python, over the C demo backend, the plugin and a backend in Python: each sentence of docs/options.md."""

from __future__ import annotations

import enum
import itertools
import re
import threading
import time

import numpy as np
import pytest

import etude
from backend_kit import CONTEXT, DATA, PyScale, one_delegate, run_threads

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
DECODE = np.load(DATA / "prefill_decode.npz")

#: backend, an int key, a legal and an illegal value of it, a string key, its default, another choice
SUBJECTS = {
    "C": (CONTEXT, "threads", 3, 65, "precision", "float32", "bfloat16"),
    "plugin": ("ScaleBackend", "percent", 50, 1001, "sign", "keep", "flip"),
    "python": ("ScaleBackend", "percent", 50, 1001, "sign", "keep", "flip"),
}


@pytest.fixture
def runtime():
    return etude.Runtime()


@pytest.fixture
def registry(runtime):
    return runtime.backend_registry


def add(runtime, kind, plugin):
    if kind == "plugin":
        runtime.backend_registry.load_library(plugin)
    elif kind == "python":
        runtime.backend_registry.register(PyScale())


@pytest.fixture(params=SUBJECTS)
def subject(request, runtime, plugin):
    add(runtime, request.param, plugin)
    return SUBJECTS[request.param]


@pytest.fixture(params=["plugin", "python"])
def scale(request, runtime, plugin):
    """A runtime with ScaleBackend, in C or in Python: what is loaded shows its options in its results."""
    add(runtime, request.param, plugin)
    return runtime


def factor(method):
    (y,) = method(X)
    return float(y[0, 0])


# ---- dicts ----


def test_set_and_get(registry, subject):
    backend, number, legal, _, text, _, other = subject
    registry.set_option(backend, {number: legal, text: other})
    assert registry.get_option(backend, number) == legal and registry.get_option(backend, text) == other
    assert type(registry.get_option(backend, number)) is int
    registry.set_option("NullBackend", {"copy": False})
    assert registry.get_option("NullBackend", "copy") is False


def test_several_backends_in_one_call(registry, subject):
    backend, number, legal, illegal, *_ = subject
    registry.set_option({"NullBackend": {"copy": False}, backend: {number: legal}})
    assert registry.get_option("NullBackend", "copy") is False and registry.get_option(backend, number) == legal
    before = registry.snapshot()
    with pytest.raises(ValueError):
        registry.set_option({"NullBackend": {"copy": True, "keep_payload": True}, backend: {number: illegal}})
    with pytest.raises(KeyError):
        registry.set_option({backend: {number: legal + 1}, "NullBackend": {"no_such_key": True}})
    with pytest.raises(TypeError):
        registry.set_option({backend: {number: legal + 1}, "NullBackend": {"copy": None}})
    assert registry.diff(before) == []
    registry.set_option({})
    registry.set_option(backend, {})
    with pytest.raises(TypeError, match="one dict"):
        registry.set_option({backend: {}}, {number: legal})


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64])
def test_numpy_integers_are_taken(registry, kind):
    registry.set_option(CONTEXT, {"threads": kind(7)})
    assert registry.get_option(CONTEXT, "threads") == 7


def test_numpy_bools_and_strings_are_taken(registry):
    registry.set_option(CONTEXT, {"clamp": np.bool_(True), "precision": np.str_("bfloat16")})
    assert registry.get_option(CONTEXT, "clamp") is True and registry.get_option(CONTEXT, "precision") == "bfloat16"


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        None,
        b"1",
        {"nested": 1},
        [1],
        (1,),
        np.float32(1),
        np.array(1),
        np.array([1]),
        object(),
        1j,
        np.timedelta64(1, "s"),
        np.bytes_(b"1"),
    ],
)
def test_other_types_are_refused(registry, subject, value):
    backend, number, *_ = subject
    with pytest.raises(TypeError) as caught:
        registry.set_option(backend, {number: value})
    assert isinstance(caught.value, etude.EtudeTypeError)
    assert f"'{backend}'" in str(caught.value) and f"'{number}'" in str(caught.value) and caught.value.subject == number


def test_bool_is_no_int_and_int_is_no_bool(registry, subject):
    backend, number, *_ = subject
    for name, key, value, words in [(backend, number, True, "expected int, got bool"), (CONTEXT, "clamp", 1, "expected bool, got int")]:
        with pytest.raises(TypeError, match=words) as caught:
            registry.set_option(name, {key: value})
        assert f"'{key}'" in str(caught.value)


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 2**64, 10**30, np.uint64(2**64 - 1)])
def test_ints_beyond_64_bits(registry, subject, value):
    backend, number, *_ = subject
    with pytest.raises(ValueError, match="64 bits") as caught:
        registry.set_option(backend, {number: value})
    assert f"'{backend}'" in str(caught.value) and f"'{number}'" in str(caught.value) and str(value) in str(caught.value)


def test_the_ends_of_64_bits_arrive(registry):
    class Wide(etude.Backend):
        n: int = etude.option(0, help="any int")

    registry.register(Wide())
    for value in (2**31, 2**63 - 1, -(2**63)):
        registry.set_option("Wide", {"n": value})
        assert registry.get_option("Wide", "n") == value


@pytest.mark.parametrize(
    ("key", "words"),
    [("", "empty"), ("k" * 64, "64 bytes"), ("ä" * 32, "64 bytes"), ("a\0b", "NUL"), ("\ud800", "UTF-8")],
)
def test_keys_that_are_no_keys(registry, subject, key, words):
    backend = subject[0]
    for call in (lambda: registry.set_option(backend, {key: 1}), lambda: registry.get_option(backend, key)):
        with pytest.raises(ValueError, match=words) as caught:
            call()
        assert f"'{backend}'" in str(caught.value)


def test_a_key_of_63_bytes_is_one(registry):
    with pytest.raises(KeyError, match="k" * 63):
        registry.set_option(CONTEXT, {"k" * 63: 1})


@pytest.mark.parametrize("key", [1, None, b"threads", ("threads",), 1.5])
def test_keys_of_other_types(registry, subject, key):
    with pytest.raises(TypeError, match="a key is a str") as caught:
        registry.set_option(subject[0], {key: 1})
    assert f"'{subject[0]}'" in str(caught.value) and repr(key) in str(caught.value)


def test_strings(registry):
    for value, words in [("x" * 256, "256 bytes"), ("ä" * 128, "256 bytes"), ("a\0b", "NUL"), ("\udc80", "UTF-8")]:
        with pytest.raises(ValueError, match=words) as caught:
            registry.set_option(CONTEXT, {"log_label": value})
        assert CONTEXT in str(caught.value) and "log_label" in str(caught.value)
    for value in ("x" * 255, "ä" * 127, "", "日本"):
        registry.set_option(CONTEXT, {"log_label": value})
        assert registry.get_option(CONTEXT, "log_label") == value
    with pytest.raises(ValueError, match="precision"):
        registry.set_option(CONTEXT, {"precision": ""})


@pytest.mark.parametrize("values", [None, 1, "threads", ["threads"], [("threads", 1)], {"threads"}])
def test_options_of_a_backend_are_a_mapping(runtime, subject, values):
    backend = subject[0]
    registry = runtime.backend_registry
    calls = [
        lambda: registry.set_option(backend, values),
        lambda: registry.set_option({"NullBackend": {}, backend: values}),
        lambda: runtime.load_program(DATA / "backends.pte", backend_options={backend: values}),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=f"backend '{backend}'"):
            call()


@pytest.mark.parametrize("options", [1, "X", [("X", {})], {1: {}}, {None: {"k": 1}}, {b"X": {}}])
def test_the_map_is_a_mapping_of_names(runtime, options):
    with pytest.raises(TypeError):
        runtime.load_program(DATA / "backends.pte", backend_options=options)


@pytest.mark.parametrize("name", ["", "x" * 64, "a\0b"])
def test_names_that_are_no_names(registry, name):
    with pytest.raises(ValueError):
        registry.set_option(name, {"k": 1})


def test_unknown_key(registry, subject):
    backend, number, *_ = subject
    near = number[:-1]
    for call in (lambda: registry.set_option(backend, {near: 1}), lambda: registry.get_option(backend, near)):
        with pytest.raises(KeyError) as caught:
            call()
        message = str(caught.value)
        assert isinstance(caught.value, etude.EtudeKeyError)
        assert f"backend '{backend}' has no option '{near}'" in message and f"did you mean '{number}'" in message
        assert "\\" not in message and not message.startswith('"'), "a KeyError prints its repr"
        assert caught.value.subject == near


def test_unknown_backend(runtime, subject):
    registry = runtime.backend_registry
    calls = [
        lambda: registry.set_option("Nope", {"k": 1}),
        lambda: registry.get_option("Nope", "k"),
        lambda: registry.reset_option("Nope"),
        lambda: registry["Nope"],
        lambda: runtime.load_program(DATA / "backends.pte", backend_options={"Nope": {"k": 1}}),
    ]
    for call in calls:
        with pytest.raises(KeyError) as caught:
            call()
        assert all(name in str(caught.value) for name in ("'Nope'", "NullBackend", CONTEXT, subject[0]))


def test_out_of_range_names_key_allowed_and_given(registry, subject):
    backend, number, _, illegal, text, default, other = subject
    with pytest.raises(ValueError, match=f"'{number}': {illegal} is out of range; allowed: -?[0-9]+ to [0-9]+"):
        registry.set_option(backend, {number: illegal})
    with pytest.raises(ValueError, match=f"'{text}': 'nope' is not allowed; allowed: '{default}', '{other}'"):
        registry.set_option(backend, {text: "nope"})


def test_read_only_and_load_only(registry):
    with pytest.raises(NotImplementedError, match="read-only"):
        registry.set_option(CONTEXT, {"init_count": 0})
    with pytest.raises(NotImplementedError, match=r"'graph'.*loaded"):
        registry.set_option(CONTEXT, {"graph": "decode"})


def test_reset_of_what_cannot_be_set_process_wide(registry):
    registry.register(PyScale())
    for key, words in (("executions", "read-only"), ("label", "loaded")):
        with pytest.raises(NotImplementedError, match=f"'{key}'.*{words}"):
            registry.reset_option("ScaleBackend", key)
        with pytest.raises(NotImplementedError, match=f"'{key}'.*{words}"):
            del registry["ScaleBackend"].options[key]


def test_reset_of_all_keys_tells_of_those_that_can_be_set_process_wide(registry):
    told = []

    class Listener(PyScale):
        name = "ScaleBackend"

        def options_changed(self, options):
            told.extend(options)

    registry.register(Listener())
    registry.reset_option("ScaleBackend")
    assert told == ["percent", "sign", "level", "traced"]


def test_nothing_of_the_callers_is_borrowed(scale):
    options = {"ScaleBackend": {"percent": 300, "sign": "flip"}}
    program = scale.load_program(DATA / "backends.pte", backend_options=options)
    options["ScaleBackend"]["percent"] = 1
    del options
    noise = [bytes(1000 + i) for i in range(1000)]
    assert factor(program["scale"]) == -3
    del noise


# ---- what there is ----


def test_options_can_be_listed(registry, subject):
    backend, number, _, illegal, text, default, other = subject
    entry = registry[backend]
    assert entry.name == backend and entry.is_available and backend in registry and backend in list(registry)
    options = entry.options
    item = options[number]
    assert number in options and len(options) == len(list(options)) and "nope" not in options
    assert (item.key, item.type, item.origin, item.value, item.maximum) == (number, "int", "default", item.default, illegal - 1)
    assert "process" in item.scopes and "load" in item.scopes and item.help and not item.read_only and item.effect in ("now", "next load")
    assert (options[text].default, options[text].choices, options[text].type) == (default, (default, other), "string")
    table = repr(options)
    lines = table.splitlines()
    assert len(lines) == len(options) + 1
    column = lines[0].index("default")
    assert all((line[column - 1] == " " and line[column] != " ") or not options[key].default for key, line in zip(options, lines[1:]))
    for key, line in zip(options, lines[1:]):
        assert line.startswith(key) and options[key].help in line and repr(options[key].value) in line
    with pytest.raises(KeyError, match=re.escape(f"'{number}_'")):
        options[number + "_"]


def test_all_that_is_known_of_an_option(registry):
    options = registry[CONTEXT].options
    level = options["log_level"]
    assert level.allowed == "0 (debug), 1 (info), 2 (warning), 3 (error)" and (level.minimum, level.maximum) == (0, 3)
    assert options["clamp"].effect == "now" and options["threads"].effect == "next load"
    assert options["graph"].scopes == ("load",) and options["output_scale_percent"].scopes == ("process",)
    count = options["init_count"]
    assert count.read_only and count.origin == "backend" and count.value == 0
    assert options["log_label"].allowed == "any" and options["clamp"].allowed == "True, False"
    assert str(options["clamp"]) == "clamp = False (default)"
    with pytest.raises(AttributeError):
        count.value = 3


def test_assign_and_delete(registry, subject):
    backend, number, legal, illegal, *_ = subject
    options = registry[backend].options
    default = options[number].default
    options[number] = legal
    assert (options[number].value, options[number].origin, registry.get_option(backend, number)) == (legal, "process", legal)
    with pytest.raises(ValueError):
        options[number] = illegal
    options[number] = default
    assert (options[number].value, options[number].origin) == (default, "process")
    del options[number]
    assert (options[number].value, options[number].origin) == (default, "default")
    with pytest.raises(KeyError):
        del options["nope"]


def test_reset(registry, subject):
    backend, number, legal, _, text, default, other = subject
    registry.set_option(backend, {number: legal, text: other})
    registry.reset_option(backend, number)
    assert registry[backend].options[number].origin == "default" and registry.get_option(backend, text) == other
    registry.reset_option(backend)
    assert registry.get_option(backend, text) == default
    assert all(option.origin in ("default", "backend") for option in registry[backend].options.values())


# ---- for a while ----


def test_a_scope_restores(registry, subject):
    backend, number, legal, _, text, _, other = subject
    registry.set_option(backend, {number: legal})
    before = registry.snapshot()
    with registry.option_scope({backend: {number: legal + 1, text: other}, "NullBackend": {"copy": False}}):
        assert registry.get_option(backend, number) == legal + 1 and registry.get_option(backend, text) == other
        assert len(registry.diff(before)) == 3
        with registry.option_scope({backend: {number: legal + 2}}):
            assert registry.get_option(backend, number) == legal + 2 and registry.get_option(backend, text) == other
        assert registry.get_option(backend, number) == legal + 1
    assert registry.diff(before) == []
    assert registry[backend].options[text].origin == "default", "a key that was not set is unset again"
    assert registry[backend].options[number].origin == "process"


def test_a_scope_restores_after_an_exception(registry, subject):
    backend, number, legal, illegal, *_ = subject
    before = registry.snapshot()
    with pytest.raises(ZeroDivisionError), registry.option_scope({backend: {number: legal}}):
        registry.set_option(backend, {number: legal + 1})
        raise ZeroDivisionError
    assert registry.diff(before) == []
    for bad in ({backend: {number: legal, "nope": 1}}, {"NullBackend": {"copy": False}, backend: {number: illegal}}, {backend: None}):
        with pytest.raises((KeyError, ValueError, TypeError)), registry.option_scope(bad):
            pytest.fail("entered")
    assert registry.diff(before) == []


def test_a_scope_outlives_its_backend(runtime, plugin):
    registry = runtime.backend_registry
    library = registry.load_library(plugin)
    with registry.option_scope({"ScaleBackend": {"percent": 1}, "NullBackend": {"copy": False}}):
        library.unload()
    assert registry.get_option("NullBackend", "copy") is True


def test_snapshot_diff_and_restore(registry, subject):
    backend, number, legal, _, text, default, other = subject
    registry.set_option(backend, {text: other})
    before = registry.snapshot()
    registry.set_option({backend: {number: legal}, "NullBackend": {"copy": False}})
    registry.reset_option(backend, text)
    after = registry.snapshot()
    changes = {(change.backend, change.key): change for change in registry.diff(before, after)}
    assert set(changes) == {(backend, number), (backend, text), ("NullBackend", "copy")}
    assert changes[backend, text].before == (other, "process") and changes[backend, text].after == (default, "default")
    assert str(changes["NullBackend", "copy"]) == "NullBackend.copy: True (default) -> False (process)"
    assert registry.diff(after) == [] and after == registry.snapshot() and before != after
    registry.restore(before)
    assert registry.diff(before) == [] and registry.get_option(backend, text) == other
    assert before[backend][text] == (other, "process") and before[backend][text].value == other
    before[backend]["new"] = None
    assert "new" not in before[backend], "a snapshot does not change"
    with pytest.raises(TypeError):
        before["X"] = {}
    assert f"{backend}.{text} = {other!r} (process)" in repr(before)


def test_diff_sees_backends_come_and_go(registry):
    before = registry.snapshot()
    registry.register(PyScale())
    changes = registry.diff(before)
    assert {change.key for change in changes} == {"percent", "sign", "level", "traced", "label"}
    assert all(change.before is None for change in changes) and "not there -> 'keep'" in str(changes[1])
    registry.restore(before)


# ---- layers ----


def test_method_beats_program_beats_process_beats_default(scale):
    registry = scale.backend_registry
    layers = [("process", 200), ("program", 300), ("method", 400)]
    for given in itertools.product([False, True], repeat=3):
        values = {origin: value for (origin, value), there in zip(layers, given) if there}
        registry.reset_option("ScaleBackend")
        if "process" in values:
            registry.set_option("ScaleBackend", {"percent": values["process"]})
        maps = {o: {"ScaleBackend": {"percent": values[o]}} if o in values else None for o in ("program", "method")}
        program = scale.load_program(DATA / "backends.pte", backend_options=maps["program"])
        method = program.load_method("scale", backend_options=maps["method"], fresh=True)
        winner = list(values)[-1] if values else "default"
        expected = {"default": 100, **values}
        assert factor(method) == expected[winner] / 100
        explained = method.explain_option("ScaleBackend", "percent")
        assert (explained.winner, explained.value, dict(explained.layers)) == (winner, expected[winner], expected)
        option = method.options("ScaleBackend")["percent"]
        assert (option.origin, option.value, option.default) == (winner, expected[winner], 100)
        assert f"ScaleBackend.percent = {expected[winner]}" in repr(explained)
        assert re.search(rf"{winner} +{expected[winner]} +<- counts", repr(explained))
        assert "sign" in repr(method.options("ScaleBackend")) and winner in repr(method.options("ScaleBackend"))


def test_a_method_overrides_key_by_key(scale):
    program = scale.load_program(DATA / "backends.pte", backend_options={"ScaleBackend": {"percent": 200, "sign": "flip"}})
    method = program.load_method("scale", backend_options={"ScaleBackend": {"percent": 300}})
    assert factor(method) == -3
    assert factor(program["scale"]) == -2
    origins = {key: option.origin for key, option in method.options("ScaleBackend").items()}
    assert origins["percent"] == "method" and origins["sign"] == "program"


def test_a_program_map_reaches_every_method(scale):
    program = scale.load_program(DATA / "backends.pte", backend_options={"ScaleBackend": {"percent": 300}, "NullBackend": {"copy": True}})
    assert factor(program["scale"]) == 3 and factor(program["chain"]) == 9
    scale.backend_registry.set_option("ScaleBackend", {"percent": 700})
    assert factor(program["scale"]) == 3


def test_a_later_change_touches_only_what_takes_effect_now(runtime):
    registry = runtime.backend_registry
    program = runtime.load_program(DATA / "prefill_decode.pte")
    method = program.load_method("decode", fresh=True)
    x, plain, rounded = (DECODE[f"decode_{name}"] for name in ("input", "output", "output_bfloat16"))
    np.testing.assert_allclose(method(x)[0], plain, rtol=1e-5, atol=1e-5)
    registry.set_option(CONTEXT, {"precision": "bfloat16", "output_scale_percent": 200})
    np.testing.assert_allclose(method(x)[0], plain * 2, rtol=1e-5, atol=1e-5)
    assert method.explain_option(CONTEXT, "precision").value == "float32"
    assert method.explain_option(CONTEXT, "output_scale_percent").value == 200
    later = program.load_method("decode", fresh=True)
    np.testing.assert_allclose(later(x)[0], rounded * 2, rtol=1e-5, atol=1e-5)
    registry.set_option(CONTEXT, {"clamp": True, "output_scale_percent": 100})
    np.testing.assert_allclose(method(x)[0], np.maximum(plain, 0), rtol=1e-5, atol=1e-5)
    assert (plain < 0).any() and not np.allclose(plain, rounded, rtol=1e-4, atol=1e-5)


def test_before_after_and_between(scale):
    registry = scale.backend_registry
    registry.set_option("ScaleBackend", {"percent": 200})
    program = scale.load_program(DATA / "backends.pte")
    registry.set_option("ScaleBackend", {"sign": "flip"})
    method = program["scale"]
    assert factor(method) == -2
    registry.set_option("ScaleBackend", {"percent": 500})
    assert factor(method) == -5
    with registry.option_scope({"ScaleBackend": {"sign": "keep"}}):
        assert factor(method) == 5
    assert factor(method) == -5


def test_options_make_a_method_of_its_own(scale):
    program = scale.load_program(DATA / "backends.pte")
    shared = program.load_method("scale")
    own = program.load_method("scale", backend_options={"ScaleBackend": {"percent": 300}})
    assert own is not shared and program.load_method("scale") is shared and program.load_method("scale", backend_options={}) is not shared
    assert factor(shared) == 1 and factor(own) == 3


def test_options_of_a_backend_that_is_not_used(scale):
    given = {"NullBackend": {"copy": False}, "ScaleBackend": {"percent": 200}}
    data = one_delegate("ScaleBackend")
    words = "options were given for backend 'NullBackend', which the program does not use"
    with pytest.raises(etude.EtudeValueError, match=words):
        scale.load_program(data, backend_options=given)
    with pytest.raises(etude.EtudeValueError, match=words):
        scale.load_program(data, backend_options=given, unused_options="error")
    with pytest.warns(etude.EtudeWarning, match=words) as warned:
        program = scale.load_program(data, backend_options=given, unused_options="warn")
    assert len(warned) == 1 and warned[0].filename == __file__
    assert factor(program["forward"]) == 2
    program = scale.load_program(DATA / "backends.pte", backend_options=given)  # another method uses it
    with pytest.raises(ValueError, match="method 'scale' does not use"):
        program.load_method("scale", backend_options=given)
    with pytest.warns(etude.EtudeWarning, match="method 'scale' does not use") as warned:
        method = program.load_method("scale", backend_options=given, unused_options="warn")
    assert factor(method) == 2 and warned[0].filename == __file__
    with pytest.raises(ValueError, match="'error' or 'warn'"):
        program.load_method("scale", unused_options="ignore")
    with pytest.raises(ValueError, match="'error' or 'warn'"):
        scale.load_program(data, unused_options="")


def test_a_method_asks_as_its_program_was_asked(scale):
    data, given = one_delegate("ScaleBackend"), {"NullBackend": {"copy": False}}
    program = scale.load_program(data, unused_options="warn")
    with pytest.warns(etude.EtudeWarning, match="NullBackend"):
        program.load_method("forward", backend_options=given)
    with pytest.raises(ValueError, match="NullBackend"):
        program.load_method("forward", backend_options=given, unused_options="error")
    scale.load_program(data, backend_options={"NullBackend": {}})  # no option, nothing unused


def test_log_options_show_in_the_log(runtime, caplog):
    """What C writes to the log comes out of Python's logger `etude`."""
    program = runtime.load_program(DATA / "prefill_decode.pte", backend_options={CONTEXT: {"log_label": "a label"}})
    with caplog.at_level("INFO", logger="etude"):
        program.load_method("decode")
        assert caplog.records == []
        for level, name in ((1, "INFO"), (3, "ERROR")):
            program.load_method("prefill", backend_options={CONTEXT: {"log_level": level}})
            record = caplog.records[-1]
            assert (record.name, record.levelname) == ("etude", name)
            assert "a label" in record.getMessage() and "prefill" in record.getMessage()


def test_etude_load_takes_options():
    x, plain = DECODE["decode_input"], DECODE["decode_output_bfloat16"]
    program = etude.load(DATA / "prefill_decode.pte", backend_options={CONTEXT: {"precision": "bfloat16"}})
    np.testing.assert_allclose(program["decode"](x)[0], plain, rtol=1e-5, atol=1e-5)
    with pytest.warns(etude.EtudeWarning, match="NullBackend"):
        etude.load(DATA / "prefill_decode.pte", backend_options={"NullBackend": {"copy": True}}, unused_options="warn")


def test_a_failed_load_leaves_no_option_behind(scale):
    registry = scale.backend_registry
    before = registry.snapshot()
    program = scale.load_program(DATA / "backends.pte")
    for bad in ({"percent": 200, "sign": "nope"}, {"percent": 1001}, {"percent": 200, "nope": 1}, {"percent": 200, "sign": 1}):
        for load in (
            lambda bad=bad: scale.load_program(DATA / "backends.pte", backend_options={"ScaleBackend": bad}),
            lambda bad=bad: program.load_method("scale", backend_options={"ScaleBackend": bad}),
        ):
            with pytest.raises((KeyError, ValueError, TypeError)) as caught:
                load()
            assert "ScaleBackend" in str(caught.value) and not isinstance(caught.value, etude.EtudeProgramError)
    assert registry.diff(before) == []
    assert factor(program["scale"]) == 1


def test_scopes_are_kept_at_load(runtime):
    with pytest.raises(NotImplementedError, match=r"'output_scale_percent'.*process-wide"):
        runtime.load_program(DATA / "prefill_decode.pte", backend_options={CONTEXT: {"output_scale_percent": 1}})
    program = runtime.load_program(DATA / "prefill_decode.pte", backend_options={CONTEXT: {"graph": "prefill"}})
    with pytest.raises(NotImplementedError, match="read-only"):
        program.load_method("decode", backend_options={CONTEXT: {"init_count": 1}})
    assert program.load_method("prefill").options(CONTEXT)["graph"].value == "prefill"


def test_explain_of_what_is_not_there(scale):
    method = scale.load_program(DATA / "backends.pte")["scale"]
    with pytest.raises(KeyError, match="did you mean 'percent'"):
        method.explain_option("ScaleBackend", "precent")
    for call in (lambda: method.explain_option("Nope", "k"), lambda: method.options("Nope")):
        with pytest.raises(KeyError, match="'Nope' is not registered"):
            call()
    method.close()
    with pytest.raises(etude.EtudeStateError, match="closed"):
        method.options("ScaleBackend")


@pytest.mark.parametrize(
    ("method_name", "backend", "key"), [("scale", "ScaleBackend", "executions"), ("null", "NullBackend", "execute_count")]
)
def test_explain_of_a_read_only_key(runtime, method_name, backend, key):
    runtime.backend_registry.register(PyScale())
    method = runtime.load_program(DATA / "backends.pte")[method_name]
    for _ in range(3):
        method(X)
    found = method.explain_option(backend, key)
    assert found.value == 3 == runtime.backend_registry.get_option(backend, key)
    assert found.winner == "backend" and dict(found.layers) == {"backend": 3}
    assert "backend  3  <- counts" in repr(found) and "default" not in repr(found)


def test_enums_are_taken_by_their_values(registry):
    class Precision(str, enum.Enum):
        LOW = "bfloat16"

    class Count(enum.IntEnum):
        TWO = 2

    registry.set_option(CONTEXT, {"precision": Precision.LOW, "threads": Count.TWO, "log_label": Precision.LOW})
    for key, value in (("precision", "bfloat16"), ("threads", 2), ("log_label", "bfloat16")):
        found = registry.get_option(CONTEXT, key)
        assert found == value and type(found) is type(value)


def test_a_near_miss_in_another_case(registry):
    with pytest.raises(KeyError, match=r"has no option 'THREADS'; did you mean 'threads'\?"):
        registry.set_option(CONTEXT, {"THREADS": 2})


@pytest.mark.parametrize("wrong", [[("threads", 2)], {"threads"}, None, 3])
def test_a_backend_that_is_no_name(registry, wrong):
    with pytest.raises(etude.EtudeTypeError, match=f"not {type(wrong).__name__}"):
        registry.set_option(wrong)


@pytest.mark.parametrize("wrong", [None, {"NullBackend": {"copy": False}}, "snapshot"])
def test_what_is_no_snapshot(registry, wrong):
    for call in (registry.restore, registry.diff, lambda it: registry.diff(registry.snapshot(), 3 if it is None else it)):
        with pytest.raises(etude.EtudeTypeError, match=r"what snapshot\(\) returned"):
            call(wrong)
    assert registry.get_option("NullBackend", "copy") is True


def test_a_backend_without_schema(runtime, plugin):
    registry = runtime.backend_registry
    registry.load_library(plugin)
    registry.set_option("ScaleRawBackend", {"percent": 200})
    assert registry.get_option("ScaleRawBackend", "percent") == 200
    options = registry["ScaleRawBackend"].options
    assert list(options) == [] and "publishes no options" in repr(options)
    assert (options["percent"].value, options["percent"].default, options["percent"].origin) == (200, None, "backend")
    options["percent"] = 300
    with registry.option_scope({"ScaleRawBackend": {"percent": 400}}):
        assert options["percent"].value == 400
    assert options["percent"].value == 300
    with pytest.raises(TypeError, match="int"):
        registry.set_option("ScaleRawBackend", {"percent": "many"})
    with pytest.raises(KeyError, match="percent"):
        registry.set_option("ScaleRawBackend", {"nope": 1})
    with pytest.raises(NotImplementedError, match="schema"):
        registry.reset_option("ScaleRawBackend")
    program = runtime.load_program(DATA / "backends.pte", backend_options={"ScaleRawBackend": {"percent": 500}})
    assert factor(program["raw"]) == 5
    method = program.load_method("raw", backend_options={"ScaleRawBackend": {"percent": 600}})
    assert factor(method) == 6
    assert {key: (o.value, o.origin) for key, o in method.options("ScaleRawBackend").items()} == {"percent": (600, "method")}
    assert method.explain_option("ScaleRawBackend", "percent").layers == {"program": 500, "method": 600}


# ---- threads ----


def test_set_while_executing(scale):
    """Four threads execute while two set: each result is that of one setting, never of a mixture."""
    registry = scale.backend_registry
    program = scale.load_program(DATA / "backends.pte")
    stop = time.monotonic() + 2
    settings = [{"percent": 200, "sign": "flip"}, {"percent": 700, "sign": "flip"}]
    seen: set[float] = set()

    def execute():
        method = program.load_method("scale", fresh=True)
        while time.monotonic() < stop:
            (y,) = method(X)
            ratio = y / X
            assert np.ptp(ratio) == 0, "one value during one execution"
            seen.add(float(ratio[0, 0]))

    def change(mine):
        while time.monotonic() < stop:
            registry.set_option("ScaleBackend", settings[mine])
            assert registry.get_option("ScaleBackend", "percent") in (200, 700)
            assert registry["ScaleBackend"].options["sign"].value == "flip"

    registry.set_option("ScaleBackend", settings[0])
    run_threads(*[execute] * 4, *[lambda i=i: change(i) for i in range(2)])
    assert seen == {-2.0, -7.0}
    assert threading.active_count() == 1
