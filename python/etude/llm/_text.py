"""From token ids to text as it grows: pieces of whole characters, cut where a stop string begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_BROKEN = "\N{REPLACEMENT CHARACTER}"


class TextStream:
    """Takes tokens one by one and gives the text that is certain by then.

    A character that several tokens make is held back until it is whole, and text that may begin a stop string until it is
    known not to. After a stop string `stopped` is true; neither it nor what follows belongs to the text.
    """

    def __init__(self, decode: Callable[[Sequence[int]], str], stop: Sequence[str] = (), context: Sequence[int] = ()) -> None:
        """`decode` turns ids into text. `context` are tokens before the first: some tokenizers write a word after
        another one with a space, and none at the beginning.
        """
        self.stopped = False
        self._decode = decode
        self._stop = tuple(stop)
        self._ids: list[int] = list(context)[-4:]
        self._shown = decode(self._ids)  # of the window of ids that is decoded together
        self._held = ""

    def push(self, token: int) -> str:
        """The text that `token` makes certain; may be empty."""
        self._ids.append(token)
        whole = self._decode(self._ids)
        if whole.endswith(_BROKEN) and len(self._ids) < 64:  # a character that is not whole yet
            return ""
        new = whole[len(self._shown) :] if whole.startswith(self._shown) else whole
        # a new window begins: the last few tokens keep the spacing of what follows right
        self._ids = self._ids[-4:]
        self._shown = self._decode(self._ids)
        return self._emit(self._held + new)

    def finish(self) -> str:
        """What is still held back, at the end of the generation."""
        whole = self._decode(self._ids)
        rest = self._held + (whole[len(self._shown) :] if whole.startswith(self._shown) else "")
        self._held = ""
        return "" if self.stopped else self._cut(rest)

    def _cut(self, text: str) -> str:
        places = [text.find(s) for s in self._stop if s in text]
        if not places:
            return text
        self.stopped = True
        return text[: min(places)]

    def _emit(self, text: str) -> str:
        text = self._cut(text)
        self._held = ""
        if self.stopped or not self._stop:
            return text
        for length in range(min(len(text), max(map(len, self._stop)) - 1), 0, -1):
            if any(s.startswith(text[-length:]) for s in self._stop):
                self._held = text[-length:]
                return text[:-length]
        return text
