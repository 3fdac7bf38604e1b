"""A headless Chromium that is driven over a pipe by its DevTools protocol, with the mouse, keys and files of a person."""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

SECONDS = 20


class Chromium:
    """One page of a browser of its own. Use as a context manager."""

    def __init__(self, command: str) -> None:
        """Start it."""
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        orders, self._to = os.pipe()
        self._from, answers = os.pipe()
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars"]
        # the browser wants its orders from descriptor 3, and answers on 4
        shell = f'exec "$0" "$@" 3<&{orders} 4>&{answers}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, command, *options, f"--user-data-dir={self._folder.name}", "--remote-debugging-pipe", "about:blank"],
            pass_fds=(orders, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(orders)
        os.close(answers)
        self._read, self._last, self._session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def __enter__(self) -> Chromium:
        """The browser itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(SECONDS)
        os.close(self._to)
        os.close(self._from)
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Result of a method of the protocol; RuntimeError with what the browser says."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters, **({"sessionId": self._session} if self._session else {})}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + 3 * SECONDS
        while b"\0" not in self._read:
            if not select.select([self._from], [], [], max(0.0, until - time.monotonic()))[0]:
                raise RuntimeError("the browser does not answer")
            piece = os.read(self._from, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self._read += piece
        message, _, self._read = self._read.partition(b"\0")
        return dict(json.loads(message))

    def evaluate(self, expression: str) -> Any:
        """Value of an expression in the page, which may be a promise."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            told = result["exceptionDetails"]
            raise RuntimeError(told.get("exception", {}).get("description", told["text"]))
        return result["result"].get("value")

    def wait(self, expression: str, what: str = "") -> Any:
        """The expression's value, as soon as it is true."""
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            value = self.evaluate(expression)
            if value:
                return value
            time.sleep(0.02)
        trouble = self.evaluate("document.querySelector('#trouble')?.textContent")
        raise RuntimeError(f"{what or expression}: not within {SECONDS} s; the page says '{trouble}'")

    def show(self, url: str, width: int = 1280, height: int = 800, dark: bool = False) -> None:
        """Open a page."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        self.wait(f"location.href === {json.dumps(url)} && document.readyState === 'complete'", url)

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of an element, which is scrolled into view."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        left, top, width, height = self.evaluate(f"(({{x, y, width, height}}) => [x, y, width, height])({found}.getBoundingClientRect())")
        return left, top, width, height

    def mouse(self, kind: str, x: float, y: float, held: bool = True) -> None:
        """`mousePressed`, `mouseMoved` or `mouseReleased`."""
        button = "left" if held else "none"
        self.call(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=int(held and kind != "mouseReleased"), clickCount=1
        )

    def click(self, selector: str) -> None:
        """Click into the middle of an element."""
        left, top, width, height = self.box(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, left + width / 2, top + height / 2)

    def stroke(self, points: Sequence[tuple[float, float]]) -> None:
        """Press at the first point, move along the others, release."""
        self.mouse("mouseMoved", *points[0], held=False)
        self.mouse("mousePressed", *points[0])
        for point in points:
            self.mouse("mouseMoved", *point)
        self.mouse("mouseReleased", *points[-1])

    def drop(self, files: Iterable[Path], selector: str = "body") -> None:
        """Drag files from outside over an element, and let them go."""
        left, top, width, height = self.box(selector)
        data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=left + width / 2, y=top + height / 2, data=data)

    def press(self, key: str) -> None:
        """Press a key by its name: Tab, Enter, ArrowRight."""
        text = {"Enter": "\r"}.get(key, "")
        code = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39}[key]
        told = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", **told, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **told)

    def type(self, selector: str, text: str) -> None:
        """Write into a field in place of what is there, and leave it."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{found}.focus(); {found}.select()")
        self.call("Input.insertText", text=text)
        self.evaluate(f"{found}.blur()")

    def choose(self, selector: str, value: str) -> None:
        """Choose of a list."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.evaluate(f"{found}.value = {json.dumps(value)}; {found}.dispatchEvent(new Event('change', {{bubbles: true}}))")

    def choose_files(self, selector: str, *files: Path) -> None:
        """Choose files as the dialog of a button would."""
        node = self.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")["result"]["objectId"]
        self.call("DOM.setFileInputFiles", objectId=node, files=[str(file) for file in files])

    def unnamed(self) -> list[str]:
        """Roles of what can be used or looked at and has no name for those who can't see it."""
        wanted = {"button", "combobox", "textbox", "image", "checkbox", "table", "region"}
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [
            n["role"]["value"] for n in nodes if not n["ignored"] and n["role"]["value"] in wanted and not n.get("name", {}).get("value")
        ]

    def picture(self, file: Path, whole: bool = False) -> None:
        """A PNG of the page: what is seen of it, or all."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        file.write_bytes(base64.b64decode(data))
