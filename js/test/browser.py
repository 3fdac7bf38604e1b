#!/usr/bin/env python3
"""Run the corpus, and the demo, in a headless browser, and compare with the goldens.

    browser.py PACKAGE [--chromium COMMAND] [--screenshot FILE] [--bundles FOLDER]
    browser.py PACKAGE --firefox COMMAND

PACKAGE is the folder that js/build made, --bundles what bundlers.mjs made. The pages are served to the browser by this
program, and post what they find to it. Prints what failed, and "N passed, N failed". With --screenshot a picture of the demo
is written, too. With --firefox it is Firefox that shows the pages, but for what takes Chromium's DevTools protocol: the mouse and keys.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "languages"))
import page  # noqa: E402
from errors import compare_errors  # noqa: E402
from languages import compare, line, pack_calls  # noqa: E402

CORPUS = ROOT / "tests" / "corpus"
CASES: dict[str, Any] = json.loads((CORPUS / "manifest.json").read_text())["cases"]
TYPES = {".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm", ".html": "text/html", ".css": "text/css"}
SECONDS = 60


class Site(ThreadingHTTPServer):
    """The pages, and what they posted."""

    daemon_threads = True

    def __init__(self, package: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folders = {
            "package": package,
            "corpus": CORPUS,
            "test": ROOT / "js" / "test",
            "languages": ROOT / "tests" / "languages",
            "demo": ROOT / "js" / "demo",
            "examples": ROOT / "examples",
        }
        self.problems: dict[str, str] = {}
        self.browser = self.memory = ""
        self.done = threading.Event()

    def take(self, kind: str, name: str, body: bytes) -> None:
        """What a page posted to /KIND/NAME."""
        if kind == "result":
            self.problems[name] = compare(CASES[name], np.load(CORPUS / CASES[name]["files"]["npz"]), body)
        elif kind == "errors":
            self.problems["errors"] = compare_errors(body.decode().splitlines(), "JavaScript", "/corpus/x_linear.pte")
        elif kind == "check":  # of the demo: empty if it holds
            self.problems[unquote(name)] = body.decode()
        elif kind == "memory":
            self.memory = f"module's memory {int(body) / 1e6:.1f} MB"
        elif kind == "done":
            self.browser = body.decode()
            self.done.set()
        else:
            self.problems[name or kind] = body.decode()


class Handler(SimpleHTTPRequestHandler):
    """Files of the site's folders; lists of cases and their calls; what pages post."""

    server: Site
    extensions_map: ClassVar[dict[str, str]] = {**SimpleHTTPRequestHandler.extensions_map, **TYPES}

    def translate_path(self, path: str) -> str:
        """The file of a page's path; nothing outside of the folders."""
        folder, _, name = path.split("?", maxsplit=1)[0].lstrip("/").partition("/")
        base = self.server.folders.get(folder)
        target = (base / name).resolve() if base else None
        inside = target is not None and base is not None and target.is_relative_to(base.resolve())
        return str(target) if inside else "/nonexistent"

    def do_GET(self) -> None:
        """Cases, calls, files."""
        kind, _, name = self.path.lstrip("/").partition("/")
        if kind == "cases":
            cases = [
                {"name": case, "model": f"/corpus/{of['files']['pte']}", "data": [f"/corpus/{ptd}" for ptd in of["files"]["ptd"]]}
                for case, of in CASES.items()
            ]
            self.answer(json.dumps(cases).encode())
        elif kind == "calls":
            self.answer(pack_calls(CASES[name], np.load(CORPUS / CASES[name]["files"]["npz"])))
        else:
            super().do_GET()

    def do_POST(self) -> None:
        """What a page found."""
        kind, _, name = self.path.lstrip("/").partition("/")
        self.server.take(kind, name, self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(b"")

    def answer(self, body: bytes) -> None:
        """A whole answer."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        with contextlib.suppress(BrokenPipeError):  # the browser has been ended
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: failures are told as such."""


def command_of(browser: str, profile: str, address: str) -> list[str]:
    """The command that shows an address without a window."""
    if "firefox" in Path(browser).name:
        return [browser, "--headless", "--no-remote", "--profile", profile, address]
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0"]
    return [browser, *options, f"--user-data-dir={profile}", address]


def browse(site: Site, browser: str, page: str) -> None:
    """Show a page in a browser until it posts /done."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = command_of(browser, profile, f"http://127.0.0.1:{site.server_port}/{page}")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            if not site.done.wait(SECONDS):
                site.problems[page] = f"not done in {SECONDS} s"
        finally:
            site.done.clear()
            process.terminate()
            _, said = process.communicate(timeout=20)
        if site.problems.get(page):
            print(said[-2000:])


def main() -> int:
    """Show the pages; 0 if all is as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", type=Path)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("chromium-browser") or "google-chrome")
    parser.add_argument("--screenshot", type=Path)
    parser.add_argument("--bundles", type=Path)
    parser.add_argument("--firefox")
    args = parser.parse_args()
    site = Site(args.package.resolve())
    threading.Thread(target=site.serve_forever, daemon=True).start()
    for shown in ("test/browser.html", "test/demo.html"):
        browse(site, args.firefox or args.chromium, shown)
    address = f"http://127.0.0.1:{site.server_port}/package/demo/"
    if not args.firefox:
        site.problems.update(page.run(args.chromium, address))
    if args.bundles:
        site.folders["bundles"] = args.bundles.resolve()
        pages = [f"http://127.0.0.1:{site.server_port}/bundles/{made.parent.name}/index.html" for made in args.bundles.glob("*/index.html")]
        site.problems.update(page.titles(args.chromium, pages, "[[3,3,3],[3,3,3]]"))
    if args.screenshot:
        page.picture(args.chromium, address, args.screenshot)
    missing = [] if site.problems.get("test/browser.html") else [name for name in [*CASES, "errors"] if name not in site.problems]
    site.problems.update(dict.fromkeys(missing, "no result"))
    for name, problem in site.problems.items():
        if problem:
            print(f"FAILED in the browser, {name}: {problem}")
    failed = sum(bool(problem) for problem in site.problems.values())
    module = (site.folders["package"] / "etude.wasm").read_bytes()
    size = f"module {len(module):,} B, {len(gzip.compress(module, 9)):,} gzipped"
    version = "".join(re.findall(r"(?:Chrome|Firefox)/\d+", site.browser))
    print(
        line(
            "JavaScript",
            f"headless {version}",
            f"{len(site.problems) - failed} right, {failed} wrong",
            "eager PyTorch's outputs",
            size,
            site.memory,
        )
    )
    print(f"JavaScript, {version}: {len(site.problems) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
