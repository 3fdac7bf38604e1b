"""What an ETRecord says of a program's instructions: which operators of the exported model they stand for.

A `.pte` has no debug handles. The exporter writes them to a file of its own: `to_edge_transform_and_lower(…, generate_etrecord=True)`,
then `program.get_etrecord().save("model.etrecord")`. It is a zip archive of JSON, of which two entries are read here, without torch.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etude.errors import EtudeProgramError


@dataclass(frozen=True, slots=True)
class Record:
    """Of one method. Handles number the operators of one export; labels are the same in every export of a model.

    handles: debug handles by instruction, in order; a delegate has those of all that is in it.
    labels:  by handle, the module and the function that the operator comes from, such as "encoder.0.linear: linear"; equal ones are
             numbered, "… #2".
    """

    handles: Mapping[int, tuple[int, ...]]
    labels: Mapping[int, str]

    def label(self, instruction: int) -> str | None:
        """What the result of an instruction is: the label of the last operator that it stands for. None where it is not known."""
        handles = self.handles.get(instruction, ())
        return self.labels.get(handles[-1]) if handles else None


def read(path: str | os.PathLike[str], method: str = "forward") -> Record:
    """The record of a method. OSError where the file can't be read, EtudeProgramError where it is no ETRecord, or of another program."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
            maps = json.loads(archive.read("debug_handle_map")) if "debug_handle_map" in names else {}
            edge = f"edge_dialect_exported_program/{method}"
            graph = json.loads(archive.read(edge if edge in names else "edge_dialect_exported_program"))
            nodes = graph["graph_module"]["graph"]["nodes"]
            handles = {int(i): tuple(h) if isinstance(h, list) else (h,) for i, h in maps[method].items() if h is not None}
            return Record(handles, _labels([node["metadata"] for node in nodes]))
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
        raise EtudeProgramError(f"{os.fspath(path)}: no ETRecord with debug handles of method '{method}' ({error})") from None


def _labels(nodes: list[dict[str, Any]]) -> dict[int, str]:
    """By handle; of several nodes with one handle the last counts."""
    found: dict[int, str] = {}
    for node in nodes:
        handle, function = node.get("debug_handle"), node.get("torch_fn")
        if handle is not None and function is not None:
            module = node.get("nn_module_stack", "").rpartition(";")[2].split(",")
            path = module[1] if len(module) > 1 else ""
            found[int(handle)] = f"{path}: {function.rpartition('.')[2]}" if path else function.rpartition(".")[2]
    seen: Counter[str] = Counter()
    for handle in sorted(found):
        label = found[handle]
        seen[label] += 1
        if seen[label] > 1:
            found[handle] = f"{label} #{seen[label]}"
    return found
