"""What programs ask of XnnpackBackend: the types of nodes of its graphs, by their codes in the payload."""

from __future__ import annotations

import struct

from etude.embed.model import XNNPACK
from etude.emit.reader import read_program
from etude.emit.wire import Wire

_MAGIC, _GRAPH_AT = b"XH00", 10  # a header: magic at 4, and where the graph begins and how long it is
_NODES = 1  # slot of the graph
_CONVERT = 18  # which the backend puts into graphs of an older form itself


def find_nodes(data: bytes) -> set[int]:
    """The codes of all nodes in the delegates of a program."""
    payloads = {one.payload for method in read_program(data).methods for one in method.delegates if one.backend == XNNPACK}
    return {code for payload in payloads for code in _codes(payload)}


def _codes(payload: bytes) -> set[int]:
    start, size = 0, len(payload)
    if payload[4:8] == _MAGIC:
        start, size = struct.unpack_from("<II", payload, _GRAPH_AT)
    graph = Wire(memoryview(payload)[start : start + size])
    return {_CONVERT} | {node.scalar(0, "B", "type") for node in graph.root().tables(_NODES, "nodes")}
