"""Bundled programs (`.bpte`): a program together with test cases for it. This finds the program; `etude.bundles` reads the cases."""

from __future__ import annotations

import struct

IDENTIFIER = b"BP08"  # bytes 4 to 7 of the file

#: Of the root table, whose fields are: version, test suites, program.
_PROGRAM_FIELD = 2


def program_part(data: memoryview) -> memoryview | None:
    """The `.pte` within a bundle, not copied; None where `data` is no bundle. ValueError for a damaged one.

    A bundle is a FlatBuffer: the root table begins at the offset that stands at byte 0, and tells how far before it its field offsets are.
    """
    if bytes(data[4:8]) != IDENTIFIER:
        return None
    try:
        (root,) = struct.unpack_from("<I", data, 0)
        (back,) = struct.unpack_from("<i", data, root)
        fields = root - back
        (fields_size,) = struct.unpack_from("<H", data, _inside(data, fields))
        place = 4 + 2 * _PROGRAM_FIELD
        offset = struct.unpack_from("<H", data, fields + place)[0] if place + 2 <= fields_size else 0
        if offset == 0:
            raise ValueError("it holds no program")
        vector = root + offset + struct.unpack_from("<I", data, root + offset)[0]
        (size,) = struct.unpack_from("<I", data, vector)
        if size > len(data) - vector - 4:
            raise ValueError(f"its program would have {size} bytes")
    except (struct.error, ValueError) as error:
        raise ValueError(f"a bundled program ({IDENTIFIER.decode()}), but damaged or cut short: {error}") from None
    return data[vector + 4 : vector + 4 + size]


def _inside(data: memoryview, at: int) -> int:
    if not 0 <= at < len(data):  # struct would count from the end
        raise ValueError(f"it points to byte {at} of {len(data)}")
    return at
