"""Write the C source of the extension, during the build: `python build_ffi.py OUTPUT.c`.

The declarations are checked in: `etude.cdef` is made from the public headers by `cdef_from_headers.py`, `call.cdef` is the part that
`call.h` adds.
"""

import sys
from pathlib import Path

from cffi import FFI

here = Path(__file__).parent
ffibuilder = FFI()
ffibuilder.cdef((here / "etude.cdef").read_text())
ffibuilder.cdef((here / "call.cdef").read_text())
ffibuilder.set_source("etude._etude", '#include "call.h"\n')

if __name__ == "__main__":
    ffibuilder.emit_c_code(sys.argv[1])
