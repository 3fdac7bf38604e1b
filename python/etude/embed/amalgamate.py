"""Two files of C that are the library: the core and those kernels that are asked for.

The text of every source file stands there as it is, but for what one file needs that many do not: headers come once; names that several
files use for something of their own get the file's name in front; functions that files share become static, so that the compiler leaves
out what nobody calls; macros of a file end with it.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from etude.embed.sources import read_sources
from etude.embed.table import Kernel

_INCLUDE = re.compile(r'^#\s*include\s+(?:"([^"]+)"|<([^>]+)>).*\n', re.MULTILINE)
_TOKEN = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\.?\d(?:[eEpP][+-]|[\w.])*|->|\.\.\.|\w+|\s+|.""", re.DOTALL)
_LOCAL = re.compile(
    r"^(?:[A-Z_0-9]+ )*(?:static|ETUDE_INLINE)\b[^;={(]*?\b(\w+)\s*[\(\[=;]"  # functions, tables
    r"|^\}\s*(\w+);"  # typedef struct { … } name;
    r"|^typedef\s[^;{]*?\(\*(\w+)\)\("
    r"|^typedef\s[^;{(]*?\b(\w+)(?:\s+__attribute__\(\([^;]*\)\))?;"
    r"|^(?:typedef\s+)?(?:struct|union|enum)\s+(\w+)\s*\{",
    re.MULTILINE,
)
_CALL = re.compile(r"\b[A-Z][A-Z_0-9]*\((\w+)")  # of a macro, which may define what its first argument names
_SUFFIX, _PREFIX = re.compile(r"##(_\w+)"), re.compile(r"\b(\w+_)##")
_ENUM = re.compile(r"^(?:typedef )?enum\b[^{;]*\{([^}]*)\}", re.MULTILINE)
_MACRO = re.compile(r"^#\s*define\s+(\w+)", re.MULTILINE)
_SHARED = re.compile(r"^(?!static|typedef|struct|union|enum|extern|return|else)[a-z_]\w*(?:\s+\w+)*[\s*]+(etude_\w+)\(", re.MULTILINE)
_WORD = re.compile(r"\b[a-zA-Z_]\w*\b")
_PUBLIC = "include/etude/"
#: Headers of the C library: these come first, whoever asks for them.
_SYSTEM = ("float.h", "limits.h", "math.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "string.h")
_NOT_EMBEDDED = (f"{_PUBLIC}host.h", f"{_PUBLIC}plugin.h")


def is_public(path: str) -> bool:
    """Is it a header of the C API?"""
    return path.startswith(_PUBLIC)


def find_include(path: str, name: str) -> str:
    """The file that `#include "name"` means in `path`."""
    sources = read_sources()
    beside = f"{path.rpartition('/')[0]}/{name}"
    for candidate in (beside, f"include/{name}", f"c/{name}", f"c/kernels/{name}"):
        if candidate in sources:
            return candidate
    raise ValueError(f"{path} includes {name}, which is not among the sources")


def internal_headers(path: str) -> set[str]:
    """The headers of the library's own that a file includes, and those that they include."""
    found: set[str] = set()
    waiting = [path]
    while waiting:
        at = waiting.pop()
        for quoted, _ in _INCLUDE.findall(read_sources()[at]):
            header = find_include(at, quoted) if quoted else ""
            if header and not is_public(header) and header not in found:
                found.add(header)
                waiting.append(header)
    return found


@functools.cache
def _definers() -> dict[str, set[str]]:
    """The files that define each name that internal headers declare."""
    declared: set[str] = set()
    for path, text in read_sources().items():
        if path.endswith(".h") and not is_public(path):
            declared |= set(_SHARED.findall(text)) | set(re.findall(r"^extern const [^;]*?\b(\w+)(?:\[\w*\])?;", text, re.MULTILINE))
    places: dict[str, set[str]] = {}
    for path, text in read_sources().items():
        if not path.endswith(".c"):
            continue
        names = {name for name in _SHARED.findall(text) if name in declared}
        names |= {name for name in re.findall(r"^const \w+ (\w+)(?:\[\w*\])? = ", text, re.MULTILINE) if name in declared}
        for name in names:
            places.setdefault(name, set()).add(path)
    return places


def needed_files(kernels: Sequence[Kernel], backends: Sequence[str] = ()) -> dict[str, list[Kernel]]:
    """The .c files that kernels and backends need, in the order in which they are put together, each with those kernels that need it.

    The files of the core come first, and are there without kernels, too. A backend is given by the file that registers it.
    """
    users: dict[str, list[Kernel]] = {path: [] for path in read_sources() if path.startswith("c/core/") and path.endswith(".c")}
    for kernel in kernels:
        found: set[str] = set()
        waiting = [kernel.file, "c/kernels/args.c"]
        while waiting:
            path = waiting.pop()
            if path not in found:
                found.add(path)
                users.setdefault(path, []).append(kernel)
                waiting += _used_files(path)
    waiting = list(backends)
    found = set()
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            users.setdefault(path, [])
            waiting += _used_files(path)
    rank = {"c/core": 0, "c/compute": 1, "c/kernels": 2, "c/backends": 3}
    return {path: users[path] for path in sorted(users, key=lambda path: (rank["/".join(path.split("/")[:2])], path))}


@functools.cache
def _used_files(path: str) -> frozenset[str]:
    """The files of compute and kernels that a file calls, itself or in an inline function of a header."""
    sources = read_sources()
    bodies = _without_comments(_expand_tables(path))
    for header in internal_headers(path):
        if header.endswith(".h"):
            bodies += re.sub(r"^(?:extern const |\w[^\n{]*\betude_\w+\()[^{;]*;", "", _without_comments(sources[header]), flags=re.MULTILINE)
    places = _definers()
    found = {file for word in set(_WORD.findall(bodies)) for file in places.get(word, ())}
    return frozenset(file for file in found if not file.startswith("c/core/"))


def _without_comments(text: str) -> str:
    return "".join(" " if token.startswith(("/*", "//")) else token for token in _TOKEN.findall(text))


def _expand_tables(path: str) -> str:
    """The text of a file with its .inc files, which may come several times, in place."""

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if not name or not name.endswith(".inc"):
            return match[0]
        return _expand_tables(find_include(path, name))

    return _INCLUDE.sub(replace, read_sources()[path])


def _locals(text: str) -> set[str]:
    """Names at file scope that a file keeps to itself."""
    names = {name for groups in _LOCAL.findall(text) for name in groups if name}
    for body in _ENUM.findall(text):
        names |= set(re.findall(r"\b([A-Za-z_]\w*)\b\s*(?:=[^,}]*)?(?:,|$|\s*$)", _without_comments(body)))
    return {name for name in names if not name.startswith("etude_")}


def _left_out(text: str) -> set[str]:
    """Functions that a macro ETUDE_NO_… leaves out: a static one that is declared all the same would be warned of."""
    names: set[str] = set()
    conditions: list[str] = []
    for line in text.splitlines():
        if line.startswith("#if"):
            conditions.append(line)
        elif line.startswith("#endif"):
            conditions.pop()
        elif any("ETUDE_NO_" in condition for condition in conditions):
            names |= set(_SHARED.findall(line))
    return names


def _pasted(text: str) -> set[str]:
    """Names that macros of a file may make of their arguments; more than there are does no harm."""
    words = set(_CALL.findall(text))
    suffixes, prefixes = set(_SUFFIX.findall(text)), set(_PREFIX.findall(text))
    words -= set(_MACRO.findall(text))
    made = {word + suffix for word in words for suffix in suffixes} | {prefix + word for word in words for prefix in prefixes}
    made -= set(_MACRO.findall(text))
    return {name for name in made | {word for word in words if "_" in word} if not name.lower().startswith("etude_") and not name.endswith("_t")}


class Amalgamation:
    """The two files: `header`, the public API, and `source`."""

    def __init__(self, files: Mapping[str, str], prelude: str, epilogue: str) -> None:
        """Put `files` together, each behind the lines that are given for it; `prelude` stands before everything, `epilogue` behind."""
        sources = read_sources()
        self._shared: set[str] = set()
        for text in (text for path, text in sources.items() if path.endswith(".h") and not is_public(path)):
            self._shared |= set(_SHARED.findall(text))
        public = "".join(text for path, text in sources.items() if is_public(path))
        self._shared -= set(_SHARED.findall(public))
        self._shared -= {name for path in files for name in _left_out(sources[path])}
        self._texts = {path: _expand_tables(path) for path in files}
        self._locals = {path: _locals(text) for path, text in self._texts.items()}
        counts = Counter(name for names in self._locals.values() for name in names)
        self._clashing = {name for name, count in counts.items() if count > 1}
        self._pasted = {path: _pasted(text) for path, text in self._texts.items()}
        made = Counter(name for path in files for name in self._pasted[path] | self._locals[path])
        self._made_twice = {name for name, count in made.items() if count > 1} - self._clashing
        self._done: set[str] = set()
        self._macros: set[str] = set()
        self.header = self._header()
        sections = "".join(self._section(path, lines) for path, lines in files.items())
        self.source = prelude + sections + epilogue

    def _header(self) -> str:
        """All public headers that need no operating system."""
        text = "".join(self._once(f"{_PUBLIC}etude.h"))
        static = "#ifndef ETUDE_STATIC\n#define ETUDE_STATIC\n#endif\n"
        guard = "#ifndef ETUDE_H_\n#define ETUDE_H_\n"
        return f"/* The C API of etude, in one file. Made by `etude embed`. */\n{guard}\n{static}\n{text}\n#endif /* ETUDE_H_ */\n"

    def _once(self, path: str) -> str:
        """A header with those that it includes, where it has not come before."""
        if path in self._done:
            return ""
        self._done.add(path)
        again = [name for name in dict.fromkeys(_MACRO.findall(read_sources()[path])) if name in self._macros]
        self._macros |= set(_MACRO.findall(read_sources()[path]))
        text = "".join(f"#undef {name}\n" for name in again) + self._expand(path, read_sources()[path])
        return text if is_public(path) else self._make_static(text)

    def _expand(self, path: str, text: str) -> str:
        def replace(match: re.Match[str]) -> str:
            if match[2]:
                return match[0] if is_public(path) or match[2] not in _SYSTEM else ""
            target = find_include(path, match[1])
            return "" if target in _NOT_EMBEDDED else self._once(target)

        return _INCLUDE.sub(replace, text)

    def _make_static(self, text: str) -> str:
        return _SHARED.sub(lambda match: f"static {match[0]}" if match[1] in self._shared else match[0], text)

    def _section(self, path: str, lines: str) -> str:
        text = self._texts[path]
        renamed = self._locals[path] & self._clashing
        stem = path.split("/", 1)[1].removesuffix(".c").replace("/", "_")
        # Included headers come in front, so that they keep their names.
        headers = ""
        for match in _INCLUDE.finditer(text):
            if match[1]:
                target = find_include(path, match[1])
                headers += "" if target in _NOT_EMBEDDED else self._once(target)
        body = _INCLUDE.sub(lambda match: match[0] if match[2] and match[2] not in _SYSTEM else "", text)
        body = self._make_static(_rename(body, renamed, stem))
        headers += "".join(f"#undef {name}\n" for name in dict.fromkeys(_MACRO.findall(body)) if name in self._macros)
        # Names made by macros can't be changed where they stand: a macro of that name changes them where they are made.
        pasted = sorted((self._pasted[path] | self._locals[path]) & self._made_twice)
        headers += "".join(f"#define {name} {stem}_{name}\n" for name in pasted)
        macros = "".join(f"#undef {name}\n" for name in [*dict.fromkeys(_MACRO.findall(body)), *pasted])
        if "#pragma GCC optimize" in body and "push_options" not in body:
            body = f"#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC push_options\n#endif\n{body}"
            body += "#if defined(__GNUC__) && !defined(__clang__)\n#pragma GCC pop_options\n#endif\n"
        return f"\n/* ---- {path} ---- */\n\n{lines}{headers}{body}{macros}"


def _rename(text: str, names: Collection[str], prefix: str) -> str:
    """The text with these identifiers prefixed, except where they are members of a struct."""
    tokens = _TOKEN.findall(text)
    solid = [i for i, token in enumerate(tokens) if not token.isspace() and not token.startswith(("/*", "//"))]
    structs: list[bool] = []  # for each open brace: is it that of a struct?
    for k, i in enumerate(solid):
        token = tokens[i]
        before = tokens[solid[k - 1]] if k else ""
        if token == "{":
            structs.append(before in {"struct", "union"} or (k > 1 and tokens[solid[k - 2]] in {"struct", "union"}))
        elif token == "}" and structs:
            structs.pop()
        elif token in names and before not in {".", "->"}:
            after = tokens[solid[k + 1]] if k + 1 < len(solid) else ""
            if not (structs and structs[-1] and after in {";", ",", "[", ")"}):
                tokens[i] = f"{prefix}_{token}"
    return "".join(tokens)
