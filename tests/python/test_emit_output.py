"""Output files appear whole or not at all, whatever goes wrong while they are written; for functions and commands."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import emit_programs
from etude.cli import main
from etude.emit import BuildError, EmitError, ModelError, ProgramBuilder, read_program, write_program
from etude.emit.files import write_files
from paths import CORPUS, ROOT

MODEL = str(CORPUS / "two_methods.pte")
LOWERED = str(ROOT / "tests/data/xnnpack/x_linear.pte")
KEY = next(iter(read_program(LOWERED).named_data))

COMMANDS = {
    "merge": ["merge", MODEL, str(CORPUS / "add.pte"), "-o"],
    "extract method": ["extract", MODEL, "--method", "encode", "-o"],
    "extract constant": ["extract", MODEL, "--constant", "encode:0", "-o"],
    "extract payload": ["extract", LOWERED, "--payload", "forward", "-o"],
    "extract named": ["extract", LOWERED, "--named", KEY, "-o"],
    "inspect": ["inspect", MODEL, "--svg"],
    "run": ["run", MODEL, "--method", "encode", "--output"],
}


def write_as(name, path):
    return main([*COMMANDS[name], str(path)])


def failing(name):
    """What is broken, as (attribute of os, its replacement); disk full at each step of writing a file."""

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    class Full:
        def __init__(self, handle, *_):
            self.handle = handle

        def __enter__(self):
            return self

        def __exit__(self, *_):
            os.close(self.handle)

        write = full

    return name, Full if name == "fdopen" else full


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("step", ["fdopen", "fsync", "chmod", "replace"])
@pytest.mark.parametrize("old", [None, b"old"], ids=["new file", "old file"])
def test_a_full_disk_leaves_the_old_file(command, step, old, tmp_path, monkeypatch, capsys):
    target = tmp_path / "out.npz"
    if old is not None:
        target.write_bytes(old)
    with monkeypatch.context() as patched:
        name, replacement = failing(step)
        patched.setattr(os, name, replacement)
        assert write_as(command, target) == 3
    error = capsys.readouterr().err
    assert "No space left on device" in error and error.count("\n") == 1
    assert step == "replace" or str(target) in error
    assert [p.name for p in tmp_path.iterdir()] == (["out.npz"] if old else [])
    assert old is None or target.read_bytes() == old
    assert write_as(command, target) == 0
    assert target.stat().st_size > 100


@pytest.mark.parametrize("command", COMMANDS)
def test_a_size_limit_leaves_nothing(command, tmp_path):
    """A real failure of the system: files may have 64 bytes at most."""
    code = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "sys.dont_write_bytecode = True\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
        "from etude.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    if sys.platform == "win32":
        pytest.skip("Windows has no file size limit")
    target = tmp_path / "out.npz"
    done = subprocess.run([sys.executable, "-c", code, *COMMANDS[command], target], capture_output=True, text=True)
    assert done.returncode == 3
    assert str(target) in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_impossible_places_are_named(command, tmp_path, capsys):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder.npz").mkdir()
    for target in (tmp_path / "nowhere" / "out.npz", tmp_path / "file" / "out.npz", tmp_path / "folder.npz"):
        assert write_as(command, target) == 3
        assert str(target) in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "folder.npz"]


@pytest.mark.skipif(sys.platform == "win32", reason="folders of Windows are not read-only")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_read_only_folder_is_named(command, tmp_path, capsys):
    """For the superuser only what the system itself makes is read-only."""
    superuser = hasattr(os, "geteuid") and os.geteuid() == 0
    folder = Path("/proc/self/fdinfo") if superuser else tmp_path
    tmp_path.chmod(0o500)
    try:
        assert write_as(command, folder / "out.npz") == 3
    finally:
        tmp_path.chmod(0o700)
    assert "out.npz" in capsys.readouterr().err
    assert not (folder / "out.npz").exists()


def test_program_and_data_files_appear_together(tmp_path, monkeypatch):
    """If any of them cannot be written, none is."""
    builder = emit_programs.make("external").builder
    real, count = os.fsync, 0

    def second_fails(handle):
        nonlocal count
        count += 1
        if count == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", second_fails)
        with pytest.raises(OSError, match="No space left"):
            builder.write(tmp_path / "model.pte")
    assert count == 2
    assert list(tmp_path.iterdir()) == []
    builder.write(tmp_path / "model.pte")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.pte", "weights.ptd"]
    with pytest.raises(BuildError, match=r"written over the program, .*weights\.ptd"):
        builder.write(tmp_path / "weights.ptd")


def test_a_bad_model_leaves_the_old_file(tmp_path):
    target = tmp_path / "out.pte"
    target.write_bytes(b"old")
    program = read_program(MODEL)
    program.methods[0].inputs = [999]
    with pytest.raises(ModelError):
        write_program(program, target)
    builder = ProgramBuilder()
    builder.method("forward").external("w", np.zeros(3))
    with pytest.raises(EmitError, match="method 'forward' has no output"):
        builder.write(target)
    assert target.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.pte"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and pipes")
def test_links_and_pipes_stay_what_they_are(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real" / "out")
    write_files({link: b"content"})
    assert link.is_symlink() and (tmp_path / "real" / "out").read_bytes() == b"content"
    (tmp_path / "real" / "out").chmod(0o640)
    write_files({link: b"again"})
    assert (tmp_path / "real" / "out").stat().st_mode & 0o777 == 0o640
    os.mkfifo(tmp_path / "pipe")
    reader = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    write_files({tmp_path / "pipe": b"through"})
    assert reader.communicate(timeout=10)[0] == b"through"
    assert (tmp_path / "pipe").is_fifo()
