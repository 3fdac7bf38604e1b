"""The page, used as a person does: with a mouse, keys, and files that are dropped. Each check says what is wrong, or nothing."""

from __future__ import annotations

import math
import re
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from chromium import Chromium

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "js" / "test"
CORPUS = ROOT / "tests" / "corpus"
STORY = ROOT / "examples" / "story"
DONE = "/ms|µs/.test(document.querySelector('#time')?.textContent ?? '')"
TROUBLE = "!document.querySelector('#trouble').hidden && document.querySelector('#trouble').textContent"
#: Begins to write, and stops at the first word.
WRITE_AND_STOP = """new Promise((resolve) => {
  document.querySelector('#write').click();
  const seen = new MutationObserver(() => {
    if (!document.querySelector('#written mark')?.textContent) return;
    seen.disconnect();
    document.querySelector('#stop').click();
    resolve();
  });
  seen.observe(document.querySelector('#written'), { childList: true, subtree: true, characterData: true });
})"""
#: What has the focus, by its name.
FOCUSED = """((e) => e === document.body ? ''
  : e.id || e.textContent.trim() || e.getAttribute('aria-label') || e.closest('label')?.textContent || e.outerHTML
)(document.activeElement)"""
Point = tuple[float, float]


def arc(x: float, y: float, rx: float, ry: float, start: float, end: float) -> list[Point]:
    """Points of an ellipse, angles in degrees."""
    angles = [math.radians(start + (end - start) * i / 24) for i in range(25)]
    return [(x + rx * math.cos(a), y + ry * math.sin(a)) for a in angles]


#: Strokes of each digit, in a square of 1.
STROKES: dict[str, list[list[Point]]] = {
    "0": [arc(0.5, 0.5, 0.24, 0.36, 0, 360)],
    "1": [[(0.38, 0.28), (0.54, 0.14), (0.54, 0.86)]],
    "2": [[*arc(0.5, 0.33, 0.21, 0.19, 190, 400), (0.3, 0.84), (0.74, 0.84)]],
    "3": [[*arc(0.48, 0.32, 0.2, 0.18, 200, 450), *arc(0.48, 0.67, 0.22, 0.19, 270, 520)]],
    "4": [[(0.58, 0.12), (0.26, 0.6), (0.76, 0.6)], [(0.6, 0.4), (0.58, 0.88)]],
    "5": [[(0.72, 0.14), (0.36, 0.14), (0.34, 0.45), *arc(0.5, 0.64, 0.22, 0.21, 250, 500)]],
    "6": [[(0.62, 0.12), (0.4, 0.36), *arc(0.5, 0.66, 0.2, 0.2, 200, 560)]],
    "7": [[(0.3, 0.14), (0.74, 0.14), (0.5, 0.86)], [(0.42, 0.52), (0.78, 0.52)]],
    "8": [[*arc(0.55, 0.28, 0.16, 0.16, 90, 450), *arc(0.46, 0.69, 0.16, 0.2, 290, 650)]],
    "9": [[*arc(0.49, 0.34, 0.19, 0.19, 0, 360), (0.66, 0.5), (0.6, 0.86)]],
}


def png(pixels: np.ndarray) -> bytes:
    """A picture, uint8 [height, width, 3], as a file."""
    height, width, _ = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class PageTest:
    """Checks of the page at an address. `folder` is for files that are made."""

    def __init__(self, browser: Chromium, address: str, folder: Path) -> None:
        """See `run`."""
        self.browser, self.address, self.folder = browser, address, folder

    # -- what a person does ------------------------------------------------------------------------------------------

    def open(self, *files: Path) -> None:
        """Drop a program on a page that was opened anew."""
        self.browser.show(f"{self.address}index.html")
        self.browser.wait("/operators/.test(document.querySelector('#about').textContent)", "the page")
        self.browser.drop(files)
        self.browser.wait(f"{DONE} || {TROUBLE}", f"{files[0].name} run")

    def text(self, selector: str) -> str:
        """Text of an element."""
        return str(self.browser.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''"))

    def after(self, act: Callable[[], None]) -> str:
        """The outputs after an act that runs the method, or the trouble that it made."""
        self.browser.evaluate(
            "document.querySelector('#outputs .list').replaceChildren(); document.querySelector('#trouble').hidden = true"
        )
        act()
        self.browser.wait(f"document.querySelector('#outputs .item') !== null || {TROUBLE}", "an answer")
        trouble = self.browser.evaluate(TROUBLE)
        return (
            str(trouble)
            if trouble
            else str(
                self.browser.evaluate(
                    "[...document.querySelectorAll('#outputs pre, #outputs .bars span:nth-child(3n)')].map((e) => e.textContent).join('; ')"
                )
            )
        )

    def draw(self, digit: str) -> str:
        """Draw a digit with the mouse; what the page reads."""
        self.browser.click("#inputs button")  # Clear
        left, top, width, height = self.browser.box("canvas.draw")
        for points in STROKES[digit]:
            self.browser.stroke([(left + x * width, top + y * height) for x, y in points])
            self.browser.wait("document.querySelector('#outputs .read') !== null", f"an answer to {digit}")
        self.browser.evaluate("new Promise((resolve) => setTimeout(resolve, 5))")
        self.browser.wait(DONE)
        return str(self.browser.evaluate("document.querySelector('#outputs .read').firstChild.textContent"))

    # -- checks ------------------------------------------------------------------------------------------------------

    def digits(self) -> str:
        """All digits are read."""
        self.browser.show(f"{self.address}index.html")
        self.browser.wait("/operators/.test(document.querySelector('#about').textContent)")
        self.browser.click("#digit")
        self.browser.wait(DONE)
        read = {digit: self.draw(digit) for digit in STROKES}
        return "; ".join(f"{digit} read as {got}" for digit, got in read.items() if got != digit)

    def dropped_program(self) -> str:
        """A program with external data; its memory plan answers to the mouse and to keys."""
        self.open(CORPUS / "external_constants.pte", CORPUS / "external_constants.ptd")
        if self.text("#name") != "external_constants.pte" or self.browser.evaluate(TROUBLE):
            return self.text("#name") + self.text("#trouble")
        left, top, width, height = self.browser.box("#plan canvas")
        lit = "document.querySelectorAll('#instructions tr.lit').length"
        places = [(x, y) for y in range(5, int(height), 10) for x in range(60, int(width), 10)]
        for x, y in places:
            self.browser.mouse("mouseMoved", left + x, top + y, held=False)
            if self.browser.evaluate(lit):
                break
        by_mouse = self.text("#plan-note")
        self.browser.mouse("mouseMoved", left - 10, top - 10, held=False)
        self.browser.evaluate("document.querySelector('#plan canvas').focus()")
        self.browser.press("ArrowRight")
        by_key = self.text("#plan-note")
        wanted = re.compile(r"bytes \d+ to \d+ of buffer")
        return "" if wanted.search(by_mouse) and wanted.search(by_key) and self.browser.evaluate(lit) else f"{by_mouse!r}, {by_key!r}"

    def arrays(self) -> str:
        """`.npy` files: dropped on an input, dropped anywhere, chosen; the sum is that of numpy."""
        a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.asfortranarray(np.full((2, 3), 0.5, np.float32))
        for name, array in {"in0.npy": a, "in1.npy": b, "wide.npy": a.astype(np.float64), "flat.npy": a.reshape(-1)}.items():
            np.save(self.folder / name, array)
        np.savez_compressed(self.folder / "both.npz", in0=a, in1=b)
        self.open(CORPUS / "add.pte")
        want = "0.5  1.5  2.5  3.5  4.5  5.5"
        problems = []
        self.after(lambda: self.browser.drop([self.folder / "in1.npy"], "#inputs .item:nth-child(2)"))
        got = self.after(lambda: self.browser.drop([self.folder / "in0.npy"], "#inputs .item:nth-child(1)"))
        problems += [f"dropped on inputs: {got}"] * (got != want)
        self.open(CORPUS / "add.pte")
        got = self.after(lambda: self.browser.drop([self.folder / "in1.npy", self.folder / "in0.npy"]))
        problems += [f"dropped anywhere: {got}"] * (got != want)
        self.browser.choose("#inputs .item:nth-child(1) select", ".npy file")
        got = self.after(lambda: self.browser.choose_files("#inputs .item:nth-child(1) input[accept^='.npy']", self.folder / "both.npz"))
        problems += [f"an archive: {got}"] * (got != want)
        for name, pattern in {
            "wide.npy": "input 0: expected float32, got float64",
            "flat.npy": r"input 0: expected shape \[2, 3\], got \[6\]",
        }.items():
            got = self.after(lambda name=name: self.browser.drop([self.folder / name], "#inputs .item:nth-child(1)"))
            problems += [f"{name}: {got}"] * (not re.search(pattern, got))
        (self.folder / "ADD.PTE").write_bytes((CORPUS / "add.pte").read_bytes())
        (self.folder / "IN0.NPY").write_bytes((self.folder / "in0.npy").read_bytes())
        (self.folder / "notes.txt").write_text("notes")
        for files in [("both.npz",), ("ADD.PTE", "both.npz"), ("in1.npy", "ADD.PTE", "IN0.NPY")]:
            self.open(CORPUS / "add.pte")
            got = self.after(lambda files=files: self.browser.drop([self.folder / name for name in files]))
            problems += [f"{files}: {got}"] * (not got.startswith(want))
        self.browser.drop([self.folder / name for name in ("ADD.PTE", "notes.txt", "in0.npy")])
        self.browser.wait(TROUBLE, "what is left out")
        got = str(self.browser.evaluate(TROUBLE))
        problems += [got] * ("left out: notes.txt;" not in got)
        (self.folder / "bad.npy").write_bytes(b"no array")
        got = self.after(lambda: self.browser.drop([self.folder / "bad.npy"]))
        problems += [f"no array: {got}"] * ("bad.npy: this is no .npy file" not in got)
        return "; ".join(problems)

    def pictures(self) -> str:
        """A dropped picture goes into both layouts, resized and normalised in the ways that are offered."""
        colours = np.zeros((4, 6, 3), np.uint8)
        colours[..., 0], colours[..., 1], colours[:, 3:, 2] = 255, 51, 255  # red, some green, half of it blue
        (self.folder / "colours.png").write_bytes(png(colours))
        (self.folder / "red.png").write_bytes(png(np.tile(np.array([255, 0, 0], np.uint8), (8, 8, 1))))
        (self.folder / "wide.png").write_bytes(png(np.full((10, 40, 3), 255, np.uint8)))
        self.open(HERE / "kinds.pte")
        problems = []

        def expect(what: str, array: np.ndarray, got: str) -> None:
            shown = [float(part) for part in re.findall(r"-?[\d.]+", got.split("…", maxsplit=1)[0].split(";", maxsplit=1)[0])]
            want = array.reshape(-1)[: len(shown)]
            if len(shown) < min(array.size, 64) or not np.allclose(shown, want, atol=2e-3):
                problems.append(f"{what}: {got[:90]}, expected {want[:9]}")

        self.after(lambda: self.browser.choose("#inputs select[aria-label^=values]", "0 … 1"))
        got = self.after(lambda: self.browser.drop([self.folder / "colours.png"], "#inputs .item"))
        expect("NHWC", colours[None] / 255, got)
        got = self.after(lambda: self.browser.choose("#inputs select[aria-label^=values]", "ImageNet"))
        expect("ImageNet", (colours[None] / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], got)
        self.after(lambda: self.browser.choose("#inputs select[aria-label^=values]", "(v − mean) / deviation"))
        self.after(lambda: self.browser.type("#inputs input[aria-label^=mean]", "0.5"))
        got = self.after(lambda: self.browser.type("#inputs input[aria-label^=deviation]", "0.5, 0.25, 1"))
        expect("own mean", (colours[None] / 255 - 0.5) / [0.5, 0.25, 1], got)
        got = self.after(lambda: self.browser.type("#inputs input[aria-label^=deviation]", "a"))
        problems += [got] * ("the deviation 'a' is typed: write a number" not in got)
        self.after(lambda: self.browser.choose("#inputs select[aria-label^=values]", "0 … 1"))
        self.after(lambda: self.browser.drop([self.folder / "wide.png"], "#inputs .item"))
        got = self.after(lambda: self.browser.choose("#inputs select[aria-label^='how the picture']", "whole, with bars"))
        bars = np.zeros((1, 4, 6, 3))
        bars[:, 1:3] = 1  # 6 x 1.5 in the middle of 6 x 4: half of a row is white at the edges
        shown = [float(part) for part in re.findall(r"[\d.]+", got.split("…")[0])]
        problems += [f"bars: {got[:80]}"] * (not shown or shown[0] > 0.1 or max(shown[18:54]) < 0.5)
        got = self.after(lambda: self.browser.choose("#inputs select[aria-label^='how the picture']", "cropped to fill"))
        expect("cropped", np.ones((1, 4, 6, 3)), got)
        self.after(lambda: self.browser.click("#methods button:nth-child(2)"))
        got = self.after(lambda: self.browser.drop([self.folder / "colours.png"], "#inputs .item"))
        expect("bytes, NCHW", colours.transpose(2, 0, 1)[None], got)
        self.after(lambda: self.browser.click("#methods button:nth-child(3)"))
        names = self.browser.evaluate("[...document.querySelector('#inputs select[aria-label^=layout]').options].map((o) => o.text).join()")
        problems += [f"layouts {names}"] * (names != "NCHW,NHWC")
        for layout, shape in {"NCHW": (3, 5, 3), "NHWC": (3, 5, 3)}.items():
            self.after(lambda: self.browser.choose("#inputs select[aria-label^=values]", "0 … 1"))
            self.after(lambda: self.browser.drop([self.folder / "red.png"], "#inputs .item"))
            got = self.after(lambda layout=layout: self.browser.choose("#inputs select[aria-label^=layout]", layout))
            red = np.zeros(shape)
            red[(0,) if layout == "NCHW" else (..., 0)] = 1
            expect(f"{layout} of both", red, got)
        return "; ".join(problems)

    def scalars(self) -> str:
        """A scalar that may be None has a field; what the program fixes is shown; what comes out, too."""
        self.open(CORPUS / "scalar_input_symbolic.pte")
        field = "#inputs .item:nth-child(2) input[type=text]"
        problems = []
        case = np.load(CORPUS / "scalar_input_symbolic.npz")
        self.browser.choose("#inputs .item:nth-child(1) select", "numbers")
        numbers = str(case["forward__in0"].tolist())
        self.after(lambda: self.browser.type("#inputs .item:nth-child(1) textarea[aria-label^=numbers]", numbers))
        golden = "; ".join(f"{v:.4g}" for name in ("out0", "out1") for v in case[f"forward__{name}"])
        given = str(case["forward__in1"])
        for typed, pattern in [
            (given, re.escape(golden)),
            ("a", "input 1: 'a' is typed: write a number, true, false, or nothing for None"),
            ("", "None"),
        ]:
            got = self.after(lambda typed=typed: self.browser.type(field, typed))
            problems += [f"{typed!r}: {got}"] * (not re.search(pattern, got))
        self.open(HERE / "kinds.pte")
        got = self.after(lambda: self.browser.click("#methods button:nth-child(6)"))
        problems += [got] * (got != "text; 7; 0.5; true; None")
        shown = self.text("#inputs .list")
        problems += [shown] * (
            not all(part in shown for part in ('"text"', "7", "0.5", "true", "number or None", "fixed when the program was exported"))
        )
        got = self.after(lambda: self.browser.click("#methods button:nth-child(5)"))
        problems += [got] * (not re.fullmatch(r"-?[\d.]+[+-][\d.]+i  -?[\d.]+[+-][\d.]+i", got))
        self.browser.choose("#inputs select", "numbers")
        got = self.after(lambda: self.browser.type("#inputs textarea[aria-label^=numbers]", "[[1, -2], [0.5, 3]]"))
        problems += [got] * (got != "1-2i  0.5+3i")
        return "; ".join(problems)

    def options(self) -> str:
        """Options of the backend are listed with their help, checked, and take effect."""
        self.open(CORPUS / "x_linear.pte")
        self.browser.click("#options summary")
        listed = self.text("#options")
        problems = [listed] * (not all(part in listed for part in ("num_threads", "weight_cache_enabled", "is global", "unless said")))
        field = "#options input[aria-label=num_threads]"
        got = self.after(lambda: self.browser.type(field, "-5"))
        problems += [f"-5: {got}"] * ("num_threads" not in got)
        got = self.after(lambda: self.browser.type(field, "many"))
        problems += [f"many: {got}"] * ("num_threads" not in got)
        got = self.after(lambda: self.browser.type(field, "1"))
        problems += [f"1: {got}"] * ("is 1, by the method" not in self.text("#options"))
        return "; ".join(problems)

    def writing(self) -> str:
        """A story is told, can be stopped, and is written by a model and tokenizer that are dropped; or by numbers of tokens."""
        self.browser.show(f"{self.address}index.html")
        self.browser.wait("/operators/.test(document.querySelector('#about').textContent)")
        self.browser.click("#story")
        self.browser.wait(
            "/a second/.test(document.querySelector('#speed').textContent) && !document.querySelector('#write').disabled", "a story"
        )
        told = self.text("#written")
        problems = [told] * (not re.match(r"Once upon a time there was a [a-z]+ [a-z]+ called [A-Z]", told))
        self.browser.type("#temperature", "0")
        self.browser.evaluate("document.querySelector('#written mark').textContent = ''")
        self.browser.click("#write")
        self.browser.wait("document.querySelector('#written mark').textContent.length > 0 && !document.querySelector('#write').disabled")
        told = self.text("#written")
        problems += [told] * (not told.startswith("Once upon a time there was a brave beaver called Clara"))
        self.browser.type("#most", "x")
        self.browser.click("#write")
        problems += [str(self.browser.wait(TROUBLE))] * ("most tokens: write a number, not 'x'" not in self.text("#trouble"))
        (self.folder / "bad.json").write_text("{}")
        self.browser.evaluate("document.querySelector('#trouble').hidden = true")
        self.browser.drop([CORPUS / "llama_tiny.pte", self.folder / "bad.json"])
        problems += [str(self.browser.wait(TROUBLE))] * ("this is no tokenizer.json" not in self.text("#trouble"))
        problems += [self.text("#name")] * (self.text("#name") != "story.pte")  # what is open stays in use
        self.open(STORY / "story.pte")
        self.browser.type("#prompt", "once")
        self.browser.click("#write")
        self.browser.wait("/without a tokenizer.json a prompt is numbers/.test(document.querySelector('#trouble').textContent)")
        self.browser.type("#prompt", "47 78")
        self.browser.type("#most", "5")
        self.browser.click("#write")
        self.browser.wait("/^47 78( \\d+){5} $/.test(document.querySelector('#written').textContent)", "numbers of tokens")
        self.browser.drop([STORY / "tokenizer.json"])
        self.browser.wait("/640 tokens are known/.test(document.querySelector('#tokenizer').textContent)")
        # stopped at once: it is less than the 300 tokens that would come
        self.browser.type("#prompt", "Once upon a time")
        self.browser.type("#most", "300")
        self.browser.evaluate(WRITE_AND_STOP)
        self.browser.wait("!document.querySelector('#write').disabled")
        problems += [self.text("#trouble")] * bool(self.browser.evaluate(TROUBLE))
        return "; ".join(problems)

    def keyboard(self) -> str:
        """All that the mouse reaches is reached by Tab, and has a name; Enter opens the digits."""
        self.browser.show(f"{self.address}index.html")
        self.browser.wait("/operators/.test(document.querySelector('#about').textContent)")
        self.browser.press("Tab")
        self.browser.press("Enter")
        self.browser.wait(DONE, "the digits")
        self.browser.evaluate("document.activeElement.blur()")
        reached = []
        for _ in range(40):
            self.browser.press("Tab")
            here = self.browser.evaluate(FOCUSED)
            if not here or here in reached:
                break
            reached.append(here)
        missing = [name for name in ("file", "story", "forward", "Clear", "Picture…", "run", "Save .npy") if name not in reached]
        missing += [] if any("memory plan" in name for name in reached) else ["memory plan"]
        problems = [f"not reached: {missing} of {reached}"] * bool(missing)
        unnamed = self.browser.unnamed()
        return "; ".join(problems + [f"without a name: {unnamed}"] * bool(unnamed))

    def widths(self) -> str:
        """Nothing is wider than a narrow window, whatever is shown."""
        problems = []
        for files in (
            [CORPUS / "mobilenetv2.pte"],
            [CORPUS / "x_mobilenetv2.pte"],
            [STORY / "story.pte", STORY / "tokenizer.json"],
            [HERE / "kinds.pte"],
        ):
            self.open(*files)
            for width in (360, 700, 1100, 1600):
                self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=700, deviceScaleFactor=1, mobile=False)
                most = self.browser.evaluate("document.documentElement.scrollWidth")
                problems += [f"{files[0].name} is {most} wide in {width}"] * (most > width)
            unnamed = self.browser.unnamed()
            problems += [f"{files[0].name}: without a name: {unnamed}"] * bool(unnamed)
        return "; ".join(problems)


CHECKS = ("digits", "dropped_program", "arrays", "pictures", "scalars", "options", "writing", "keyboard", "widths")


def run(command: str, address: str) -> dict[str, str]:
    """What is wrong with each check of the page at an address; empty if nothing is."""
    found = {}
    with tempfile.TemporaryDirectory() as folder, Chromium(command) as browser:
        test = PageTest(browser, address, Path(folder))
        for name in CHECKS:
            try:
                found[f"page: {name}"] = getattr(test, name)()
            except RuntimeError as error:
                found[f"page: {name}"] = str(error) or "failed"
    return found


def titles(command: str, addresses: list[str], want: str) -> dict[str, str]:
    """What is wrong with the titles that pages give themselves."""
    found = {} if addresses else {"bundles": "there are none"}
    with Chromium(command) as browser:
        for address in addresses:
            try:
                browser.show(address)
                browser.wait(f"document.title === {want!r}", address)
                found[address.split("/", 3)[3]] = ""
            except RuntimeError as error:
                found[address.split("/", 3)[3]] = str(error)
    return found


def picture(command: str, address: str, file: Path) -> None:
    """A picture of the page with a digit that was drawn."""
    with tempfile.TemporaryDirectory() as folder, Chromium(command) as browser:
        test = PageTest(browser, address, Path(folder))
        browser.show(f"{address}index.html", 1280, 800)
        browser.wait("/operators/.test(document.querySelector('#about').textContent)")
        browser.click("#digit")
        browser.wait(DONE)
        test.draw("3")
        browser.evaluate("scrollTo(0, 0)")
        browser.picture(file)
