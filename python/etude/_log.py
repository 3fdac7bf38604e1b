"""The log of C, and of backends, as Python's: loggers `etude` and `etude.backend.NAME`. Silent until the program configures logging."""

from __future__ import annotations

from typing import TYPE_CHECKING

from etude._lib import CData, ffi, lib, text

if TYPE_CHECKING:
    import logging

#: Levels of etude, in order, as those of `logging`.
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
_BY_NUMBER = {
    lib.ETUDE_LOG_DEBUG: LEVELS["debug"],
    lib.ETUDE_LOG_INFO: LEVELS["info"],
    lib.ETUDE_LOG_WARNING: LEVELS["warning"],
    lib.ETUDE_LOG_ERROR: LEVELS["error"],
}


def logger(name: str) -> logging.Logger:
    """A logger below `etude`."""
    import logging  # noqa: PLC0415  most programs never come here

    top = logging.getLogger("etude")
    if not top.handlers:
        top.addHandler(logging.NullHandler())
    return logging.getLogger(name)


@ffi.def_extern(name="etude_py_log")
def _log(self_: CData, level: int, message: CData) -> None:
    logger("etude").log(_BY_NUMBER.get(level, LEVELS["error"]), "%s", text(message))
