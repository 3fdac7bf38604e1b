"""docs/kernels.md, followed to the letter in an empty folder: files are written as they stand, commands run, outputs compared."""

import os
import re
import subprocess
import sys

from paths import ROOT

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def test_as_written(tmp_path):
    text = (ROOT / "docs/kernels.md").read_text()
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    printed, done, outputs = "", [], 0
    for block in FENCE.finditer(text):
        language, content = block.groups()
        if language == "sh":
            run = subprocess.run(["sh", "-eu", "-c", content], cwd=tmp_path, env=environment, capture_output=True, text=True)
            assert run.returncode == 0, run.stdout + run.stderr
            printed = run.stdout
            done.append(content)
        elif language == "text":
            wanted = re.escape(content).replace("…", r"[\d,]+")  # a number that changes from build to build
            assert re.fullmatch(wanted, "".join(f"{line.rstrip()}\n" for line in printed.splitlines())), printed
            outputs += 1
        else:
            names = re.findall(r"`(\w+\.\w+)`[^`]*$", text[: block.start()])
            assert names, content
            (tmp_path / names[0]).write_text(content)
            if language == "c":  # and clean under strict flags
                strict = ["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}"]
                subprocess.run([*strict, names[0]], cwd=tmp_path, check=True)
    assert (len(done), outputs) == (5, 5)
    assert {p.name for p in tmp_path.iterdir()} >= {"blend.pte", "my_kernels.py", "blend_kernel.so", "run"}
