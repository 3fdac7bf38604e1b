"""The FFI builder that `cffi-gen-src exec-python` runs during the build.

The declarations are checked in: `etude.cdef` is made from the public headers by `cdef_from_headers.py`, `call.cdef` is the part that
`call.h` adds.
"""

from pathlib import Path

from cffi import FFI

here = Path(__file__).parent
ffibuilder = FFI()
ffibuilder.cdef((here / "etude.cdef").read_text())
ffibuilder.cdef((here / "call.cdef").read_text())
ffibuilder.set_source("etude._etude", '#include "call.h"\n')
