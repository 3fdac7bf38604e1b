"""The process-wide options of all backends at one moment: to compare, and to go back to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from etude._lib import Handle, lib, registry_lock, text
from etude._option_rows import OptionRows, Value
from etude.errors import EtudeKeyError, EtudeTypeError
from etude.options import Options, get_option, is_set, read_schema, reset_option, set_options


class Setting(NamedTuple):
    """A value, and where it comes from: "default", or "process" where it was set."""

    value: Value
    origin: str

    def __str__(self) -> str:
        return f"{self.value!r} ({self.origin})"


class OptionChange(NamedTuple):
    """A key whose setting differs between two snapshots. None: the backend was not registered then."""

    backend: str
    key: str
    before: Setting | None
    after: Setting | None

    def __str__(self) -> str:
        return f"{self.backend}.{self.key}: {self.before or 'not there'} -> {self.after or 'not there'}"


class OptionSnapshot(Mapping[str, Mapping[str, Setting]]):
    """Settings by backend and key; nothing changes it any more. Read-only keys, and backends without schema, are not part of it."""

    def __init__(self, settings: Mapping[str, Mapping[str, Setting]]) -> None:
        """Copy `settings`."""
        self._settings = {backend: tuple(keys.items()) for backend, keys in settings.items()}

    def __getitem__(self, backend: str) -> dict[str, Setting]:
        return dict(self._settings[backend])

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def __repr__(self) -> str:
        rows = [f"{backend}.{key} = {setting}" for backend, keys in self._settings.items() for key, setting in keys]
        return "\n".join(rows) or "(no options)"


def check_snapshot(snapshot: object) -> None:
    """EtudeTypeError for anything else."""
    if not isinstance(snapshot, OptionSnapshot):
        raise EtudeTypeError(f"expected what snapshot() returned, got {type(snapshot).__name__}; options in a dict are set by set_option")


def backend_names(runtime: Handle) -> list[str]:
    """The names of all registered backends."""
    pointer = runtime.pointer
    with registry_lock:
        return [text(lib.etude_runtime_backend_name(pointer, i)) for i in range(lib.etude_runtime_backend_count(pointer))]


def present(runtime: Handle, backend: str, key: str) -> Setting:
    """The present setting of a key."""
    if read_schema(runtime, backend) is None:  # such a backend can't tell its default from the same value set
        return Setting(get_option(runtime, backend, key), "process")
    return Setting(get_option(runtime, backend, key), "process" if is_set(runtime, backend, key) else "default")


def take(runtime: Handle) -> OptionSnapshot:
    """All settings now."""
    found: dict[str, dict[str, Setting]] = {}
    for backend in backend_names(runtime):
        try:
            options = [option for option in Options(runtime, backend).values() if not option.read_only]
        except EtudeKeyError:
            if backend in backend_names(runtime):
                raise
            continue  # another thread took it out
        if options:
            found[backend] = {option.key: Setting(option.value, option.origin) for option in options}
    return OptionSnapshot(found)


def diff(before: OptionSnapshot, after: OptionSnapshot) -> list[OptionChange]:
    """What differs, in the order of `after`."""
    for snapshot in (before, after):
        check_snapshot(snapshot)
    changes = []
    for backend in dict.fromkeys([*after, *before]):
        old, new = before.get(backend, {}), after.get(backend, {})
        for key in dict.fromkeys([*new, *old]):
            if old.get(key) != new.get(key):
                changes.append(OptionChange(backend, key, old.get(key), new.get(key)))
    return changes


def put_back(runtime: Handle, settings: Mapping[str, Mapping[str, Setting]]) -> None:
    """Make settings what they were: values in one call, all or none, and then what was not set is unset again.

    Backends that are no longer registered are left out.
    """
    here = set(backend_names(runtime))
    settings = {backend: keys for backend, keys in settings.items() if backend in here}
    values: dict[str, dict[str, Value]] = {}
    for backend, keys in settings.items():
        changed = {key: s.value for key, s in keys.items() if s.origin == "process" and present(runtime, backend, key) != s}
        if changed:
            values[backend] = changed
    set_options(runtime, OptionRows(values))
    for backend, keys in settings.items():
        for key, setting in keys.items():
            if setting.origin == "default" and is_set(runtime, backend, key):
                reset_option(runtime, backend, key)
