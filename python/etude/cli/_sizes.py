"""What takes the space in a program's file and in memory, largest first."""

from __future__ import annotations

from typing import Any

import etude
from etude.emit.model import Program as Model


def constants_of(program: etude.Program) -> list[dict[str, Any]]:
    """Constants, a row each: name or first use, type, bytes; shared ones of several methods once for each."""
    rows = []
    for method in program:
        seen = set()
        for instruction in program.instructions(method):
            for place, value in enumerate(instruction.arguments):
                tensor = value.info.tensor
                if tensor is None or value.index in seen or tensor.is_state() or not tensor.is_memory_planned() or tensor.placement():
                    continue
                seen.add(value.index)
                name = tensor.name() or f"%{value.index}"
                use = f"instruction {instruction.index} ({instruction.name or instruction.kind}), argument {place}"
                text = f"{tensor.dtype_name()} {list(tensor.sizes())}"
                rows.append({"method": method, "name": name, "type": text, "bytes": tensor.nbytes(), "use": use})
    return sorted(rows, key=lambda row: -int(row["bytes"]))


def segments_of(program: etude.Program) -> list[dict[str, Any]]:
    """Segments of the file, largest first."""
    rows = [{"segment": i, "kind": s.kind, "bytes": s.size, "offset": s.offset} for i, s in enumerate(program.segments)]
    return sorted(rows, key=lambda row: -row["bytes"])


def payloads_of(model: Model) -> list[dict[str, Any]]:
    """What delegates are given, a row for each delegate, largest first; equal ones may be stored once."""
    rows = [
        {"method": method.name, "delegate": i, "backend": delegate.backend, "bytes": len(delegate.payload)}
        for method in model.methods
        for i, delegate in enumerate(method.delegates)
    ]
    return sorted(rows, key=lambda row: -int(str(row["bytes"])))


def memory_of(program: etude.Program) -> list[dict[str, Any]]:
    """What each method takes when it is loaded, region by region."""
    return [{"method": name, **{k: int(v) for k, v in program.memory(name)._asdict().items()}} for name in program]


def sizes(program: etude.Program, model: Model) -> dict[str, Any]:
    """All of it, for JSON; `model` is the same program, as the file tools read it."""
    found = {"constants": constants_of(program), "payloads": payloads_of(model)}
    return found | {"segments": segments_of(program), "memory": memory_of(program)}


def sizes_text(program: etude.Program, model: Model, *, limit: int = 20) -> str:
    """All of it, for reading."""
    found = sizes(program, model)
    total = sum(row["bytes"] for row in found["constants"])
    lines = [f"constants: {len(found['constants'])}, {total:,} bytes"]
    for row in found["constants"][:limit]:
        lines.append(f"  {row['bytes']:>12,}  {row['type']:<28} {row['name']}  {row['method']}, {row['use']}")
    if len(found["constants"]) > limit:
        lines.append(f"  … {len(found['constants']) - limit} more (--json lists all)")
    if found["payloads"]:
        lines.append(f"payloads of delegates: {len(found['payloads'])}, {sum(r['bytes'] for r in found['payloads']):,} bytes")
    for row in found["payloads"][:limit]:
        lines.append(f"  {row['bytes']:>12,}  {row['backend']}, {row['method']}, delegate {row['delegate']}")
    lines.append(f"segments of the file: {len(found['segments'])}, {sum(r['bytes'] for r in found['segments']):,} bytes")
    for row in found["segments"][:limit]:
        lines.append(f"  {row['bytes']:>12,}  segment {row['segment']} ({row['kind']}) at byte {row['offset']:,}")
    if len(found["segments"]) > limit:
        lines.append(f"  … {len(found['segments']) - limit} more")
    for row in found["memory"]:
        parts = ", ".join(f"{key} {value:,}" for key, value in row.items() if key != "method" and value)
        lines.append(f"memory of method {row['method']}: {parts} bytes")
    return "\n".join(lines)
