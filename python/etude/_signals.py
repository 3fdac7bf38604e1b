"""What ends an execution: signals, such as that of Ctrl-C, whose handlers run every so often while C executes, and `Method.cancel`.

C asks by `etude_signals_came` (call.h). A handler of Python's runs when the main thread enters Python code, which is all there is to do.
"""

from __future__ import annotations

import threading

from etude._callback import lost
from etude._lib import CData, ffi, lib


def watch(method: CData, runtime: CData) -> CData:
    """Let executions of a method (an `etude_method`) end by signals, or by number. What this returns (an `etude_signals`) must live as
    long as the method.
    """
    signals = ffi.new("etude_signals *")
    signals.hooks = lib.etude_runtime_hooks(runtime)
    signals.thread = threading.main_thread().ident or 0
    lib.etude_method_set_interrupt(method, ffi.addressof(lib, "etude_signals_came"), signals)
    return signals


@ffi.def_extern(name="etude_py_handle_signals", error=True, onerror=lost)
def _handle_signals() -> bool:
    """Handlers run before the first line of this."""
    return False
