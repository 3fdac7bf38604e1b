#!/usr/bin/env python3
"""Make docs/c-api.md, the reference of the C interface, from the public headers and their comments.

    docs/c_api.py            rewrite docs/c-api.md
    docs/c_api.py --check    compare only; status 1 where it is out of date

A header's comments are its documentation: `/** … */` in front of a declaration (or of several that follow each other without a blank
line), `/**< … */` behind a member, `::name` for a name of the interface, `@p name` for a parameter. Either way the script fails where a
declaration has no comment, where a name or parameter does not exist, and where the comment of a function does not say what a caller must
know: errors of what returns a status, life of what a returned pointer points to, threads (which the head of a header may say for all).
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

DOCS = Path(__file__).resolve().parent
HEADERS = DOCS.parent / "include/etude"
#: In the order in which a reader meets them.
ORDER = [
    "etude", "base", "runtime", "program", "method", "tensor", "options", "memory", "hooks", "host", "builtin", "profile", "trace",
    "kernel", "backend", "plugin",
]  # fmt: skip
#: For what a compiler needs, not a reader.
LEFT_OUT = re.compile(r"ETUDE_\w+_H_$|ETUDE_API$|ETUDE_PLUGIN_EXPORT$")

_COMMENT = re.compile(r"/\*\*(?!<)(.*?)\*/", re.S)
_TRAILING = re.compile(r"/\*\*<(.*?)\*/", re.S)


@dataclass
class Member:
    """A member of a struct, or a constant of an enumeration."""

    declaration: str
    text: str
    names: list[str]


@dataclass
class Entry:
    """A comment and what it stands in front of."""

    kind: str  # function, struct, union, enum, type, macro
    names: list[str]
    text: str
    code: list[str]
    members: list[Member] = field(default_factory=list)


@dataclass
class Header:
    """A header: what its head says, and its entries."""

    name: str
    text: str
    entries: list[Entry]


def clean(comment: str) -> str:
    """The text of a comment, without the stars in front of its lines."""
    lines = [re.sub(r"^\s*\* ?", "", line).rstrip() if i else line.strip() for i, line in enumerate(comment.split("\n"))]
    return "\n".join(lines).replace("@file\n", "").strip()


def without_comments(code: str) -> str:
    """Code on one line."""
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", " ", code, flags=re.S)).strip()


def members(body: str, separator: str) -> list[Member]:
    """What stands between the braces of a struct, union (`;`) or enumeration (`,`)."""
    found: list[Member] = []
    at, start, depth, before = 0, 0, 0, ""
    while at < len(body):
        comment = re.compile(r"/\*\*(<?)(.*?)\*/|/\*(.*?)\*/", re.S).match(body, at)
        if comment:
            if comment[1] and found:
                found[-1].text = clean(comment[2])
                # what stood in front of the comment on its line belongs to the member that is over
                start = start if body[start : comment.start()].strip() else comment.end()
            elif comment[2] is not None and not body[start : comment.start()].strip():
                before = clean(comment[2])
                start = comment.end()
            at = comment.end()
            continue
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(body[at], 0)
        if body[at] == separator and depth == 0:
            _close(found, body[start:at], before)
            start, before = at + 1, ""
        at += 1
    # the last constant has no comma, and its comment was taken for one of the constant before
    rest = body[start:]
    if without_comments(rest):
        trailing = _TRAILING.search(rest)
        if trailing and found:
            found[-1].text = _text_before(body[:start]) or ""
        _close(found, rest, clean(trailing[1]) if trailing else before)
    return found


def _text_before(code: str) -> str:
    """The trailing comment with which code ends."""
    last = re.search(r"/\*\*<((?:(?!\*/).)*)\*/\s*$", code, re.S)
    return clean(last[1]) if last else ""


def _close(found: list[Member], code: str, text: str) -> None:
    declaration = without_comments(code)
    if not declaration:
        return
    pointer = re.search(r"\(\*(\w+)\)", declaration)
    names = [pointer[1]] if pointer else re.findall(r"(\w+)(?:\[[^\]]*\])?(?=\s*(?:,|$|=))", declaration)
    found.append(Member(declaration, text, names))


def read_declaration(code: str, text: str) -> Entry | None:
    """The entry of one declaration; None for one that has been seen, as `struct x;` is."""
    flat = without_comments(code).replace("ETUDE_API ", "").replace("ETUDE_PLUGIN_EXPORT ", "")
    if macro := re.match(r"#define (\w+)(\([^)]*\))?", flat):
        return Entry("macro", [macro[1]], text, [flat.replace("\\ ", "")])
    if aggregate := re.match(r"(typedef )?(struct|union|enum) ?(\w*) ?\{", flat):
        body = code[code.index("{") + 1 : code.rindex("}")]
        kind, name = aggregate[2], aggregate[3]
        rows = members(body, "," if kind == "enum" else ";")
        return Entry(kind, [name] if name else [row.names[0] for row in rows], text, [], rows)
    if re.match(r"typedef struct (\w+) \1;$", flat):
        return Entry("type", [flat.split()[2]], text, [flat])
    if pointer := re.match(r"typedef .*?\(\*(\w+)\)", flat):
        return Entry("type", [pointer[1]], text, [flat])
    if plain := re.match(r"typedef .*?(\w+);$", flat):
        return Entry("type", [plain[1]], text, [flat])
    if function := re.match(r"[\w *]*?\b(etude_\w+)\(", flat):
        return Entry("function", [function[1]], text, [flat])
    raise SystemExit(f"c_api.py: can't read: {flat}")


def declarations(code: str) -> list[str]:
    """Each declaration and macro of some lines."""
    # a macro ends with its line, all else with a semicolon outside of braces
    out, start, depth, i = [], 0, 0, 0
    while i < len(code):
        if code.startswith("/*", i):
            i = code.index("*/", i) + 2
            continue
        if code[i] == "#" and depth == 0 and not code[start:i].strip():
            end = code.find("\n", i)
            while code[end - 1] == "\\":
                end = code.find("\n", end + 1)
            out.append(code[start : end if end >= 0 else len(code)])
            i = start = end if end >= 0 else len(code)
            continue
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(code[i], 0)
        if code[i] == ";" and depth == 0:
            out.append(code[start : i + 1])
            start = i + 1
        i += 1
    return [piece for piece in out if without_comments(piece)]


def read_header(path: Path) -> Header:
    """The entries of a header, in its order."""
    text = path.read_text()
    head = _COMMENT.match(text)
    if not head:
        raise SystemExit(f"{path.name}: begins without a comment")
    # what is conditional on the language or compiler is no part of the interface
    body = re.sub(r"^#ifdef __cplusplus\n.*?^#endif\n", "", text[head.end() :], flags=re.S | re.M)
    body = re.sub(r"^#if defined\((?:ETUDE_STATIC|_WIN32)\)\n.*?^#endif\n(?=\n)", "", body, flags=re.S | re.M)
    body = re.sub(r"^#(?:ifndef|include|endif|define \w+_H_).*\n?", "", body, flags=re.M)
    entries: list[Entry] = []
    for block in re.split(r"\n\s*\n(?![ ]|\})", body):  # members are indented
        comment = re.match(r"\s*/\*\*(?!<)(.*?)\*/", block, re.S)
        said = clean(comment[1]) if comment else ""
        for code in declarations(block[comment.end() :] if comment else block):
            entry = read_declaration(code, said)
            if entry is None or LEFT_OUT.match(entry.names[0]):
                continue
            if entry.kind == "macro":
                entry.text = _text_before(code.rstrip()) or said
            before = entries[-1] if entries else None
            if before and before.kind == entry.kind in ("function", "macro") and said and before.text == said:
                before.names += entry.names
                before.code += entry.code
            else:
                entries.append(entry)
    return Header(path.stem, clean(head[1]), entries)


# ---- what must hold ----

_LIFE = re.compile(r"live|Static|borrow|copied|as long|own|until|NULL", re.I)
_ERRORS = re.compile(r"::ETUDE_[A-Z_]+|[Ff]ails|and fail,|never fails|Failures|Statuses as|[Aa]s ::etude|The same")
_THREADS = re.compile(r"[Tt]hread|set-up call|synchronised")


def function_lacks(entry: Entry, header: Header) -> list[str]:
    """What the comment of a function does not say, or says of a parameter that is not there."""
    lacks = [
        f"'@p {name}' is none of its parameters"
        for name in re.findall(r"@p (\w+)", entry.text)
        if not re.search(rf"\b{name}\b", " ".join(entry.code))
    ]
    if not _THREADS.search(entry.text + header.text):
        lacks.append("does not say which threads may call it")
    if entry.code[0].startswith("etude_status") and not _ERRORS.search(entry.text):
        lacks.append("does not say how it fails")
    if re.match(r"(const )?\w+ \*", entry.code[0]) and not _LIFE.search(entry.text):
        lacks.append("does not say how long its result lives")
    return lacks


def problems(headers: list[Header], anchors: set[str]) -> list[str]:
    """What the comments lack or name wrongly, and what plugins can't reach."""
    wrong = []
    for header in headers:
        texts = {f"{header.name}.h": header.text}
        for entry in header.entries:
            place = f"{header.name}.h: {entry.names[0]}"
            texts[place] = " ".join([entry.text, *(row.text for row in entry.members)])
            if not entry.text:
                wrong.append(f"{place}: has no comment")
            if entry.kind == "function":
                wrong += [f"{place}: {what}" for what in function_lacks(entry, header)]
        for place, text in texts.items():
            wrong += [f"{place}: '::{name}' is not in the headers" for name in re.findall(r"(?<!\w)::(\w+)", text) if name not in anchors]
    entries = [entry for header in headers for entry in header.entries]
    slots = {name for entry in entries if entry.names == ["etude_host_api"] for row in entry.members for name in row.names}
    for name in (name for entry in entries if entry.kind == "function" for name in entry.names):
        if re.match(r"etude_(kernel|init_context|execute_context)_", name) and name.removeprefix("etude_") not in slots:
            wrong.append(f"plugin.h: etude_host_api has no slot for {name}")
    return wrong


# ---- the page ----


def markdown(text: str) -> str:
    """A comment's text with links; lists get the blank line that Markdown wants in front of them."""
    text = re.sub(r"(?<!\w)::(\w+)((?:\.\w+)?)", lambda m: f"[`{m[1]}{m[2]}`](#{m[1]})", text)
    text = re.sub(r"@p (\w+)", r"`\1`", text)
    text = re.sub(r"(?<![\w`(\[#])(etude_[a-z_]\w+|ETUDE_[A-Z0-9_]+)\b(?![`\]…])", r"`\1`", text)
    return re.sub(r"(?<!\n)\n(- )", r"\n\n\1", text, count=1)


def cell(text: str) -> str:
    """The same as one line of a table."""
    return re.sub(r"\s+", " ", markdown(text)).replace("|", "\\|")


def wrap_signature(code: str) -> str:
    """A declaration, its parameters below each other where it is long."""
    if len(code) <= 110 or "(" not in code:
        return code
    head, rest = code.split("(", 1)
    depth, parts, start = 0, [], 0
    for i, char in enumerate(rest):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if char == "," and depth == 0:
            parts.append(rest[start : i + 1])
            start = i + 1
    parts.append(rest[start:])
    return head + "(\n    " + "\n    ".join(part.strip() for part in parts)


def write_entry(entry: Entry) -> list[str]:
    """The lines of an entry."""
    title = ", ".join(entry.names) if entry.kind != "enum" else f"{entry.names[0]}, …"
    out = ["".join(f'<a id="{name}"></a>' for name in (entry.names if entry.kind != "enum" else [])), "", f"### {title}", ""]
    if entry.code:
        out += ["```c", *[wrap_signature(code) for code in entry.code], "```", ""]
    elif entry.kind != "enum":
        out += [f"`{entry.kind} {entry.names[0]}`", ""]
    if entry.text:
        out += [markdown(entry.text), ""]
    if entry.kind == "enum":
        out += ["| constant | value | |", "|---|---|---|"]
        next_value = 0
        for row in entry.members:
            value = row.declaration.split("=", 1)[1].strip() if "=" in row.declaration else str(next_value)
            next_value = int(value, 0) + 1 if re.fullmatch(r"\d+|0x[0-9a-fA-F]+", value) else 0
            out.append(f'| <a id="{row.names[0]}"></a>`{row.names[0]}` | `{value}` | {cell(row.text)} |')
        out.append("")
    elif entry.members:
        out += ["| member | |", "|---|---|"]
        out += [f"| `{row.declaration.replace('|', chr(92) + '|')}` | {cell(row.text)} |" for row in entry.members]
        out.append("")
    return out


def page(headers: list[Header]) -> str:
    """The whole page."""
    out = [
        "# C API reference",
        "",
        "<!-- Made from the comments of include/etude/*.h by docs/c_api.py; do not edit. -->",
        "",
        "What the headers in `include/etude/` say, one section each. `etude.h` includes them all but `host.h` and `plugin.h`.",
        "[languages.md](languages.md) shows a first program, [architecture.md](architecture.md) how the parts belong together.",
        "",
        "| header | |",
        "|---|---|",
    ]
    for header in headers:
        first = re.split(r"(?<=\.)\s|\n\n|:\n", header.text)[0]
        out.append(f"| [`{header.name}.h`](#{header.name}h) | {cell(first)} |")
    for header in headers:
        out += ["", f'<a id="{header.name}h"></a>', "", f"## {header.name}.h", "", markdown(header.text), ""]
        for entry in header.entries:
            out += write_entry(entry)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    left = {path.stem for path in HEADERS.glob("*.h")} ^ set(ORDER)
    if left:
        sys.exit(f"c_api.py: ORDER and include/etude differ: {', '.join(sorted(left))}")
    headers = [read_header(HEADERS / f"{name}.h") for name in ORDER]
    entries = [entry for header in headers for entry in header.entries]
    anchors = {name for entry in entries for name in entry.names}
    anchors |= {name for entry in entries if entry.kind == "enum" for row in entry.members for name in row.names}
    wrong = problems(headers, anchors)
    for line in wrong:
        print(line, file=sys.stderr)
    text = page(headers)
    target = DOCS / "c-api.md"
    if check:
        if not target.exists() or target.read_text() != text:
            wrong.append("stale")
            print("docs/c-api.md is out of date: run docs/c_api.py", file=sys.stderr)
    else:
        target.write_text(text)
    functions = sum(len(entry.names) for entry in entries if entry.kind == "function")
    print(f"{functions} functions, {len(anchors)} names; {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
