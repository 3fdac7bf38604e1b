#!/usr/bin/env python3
"""Make src/bindings.rs and tests/layouts.rs from the declarations that python/cffi makes of the public headers.

    python bindings/rust/etude-sys/generate.py             rewrite them; needs pycparser, which comes with cffi
    python bindings/rust/etude-sys/generate.py --check     compare only; status 1 where one is out of date

cdef_from_headers.py there calls it.

tests/layout.rs compares the result with the layouts of the C compiler.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pycparser import c_ast, c_parser  # type: ignore[import-untyped]

HERE = Path(__file__).resolve().parent
CDEF = HERE.parents[2] / "python/cffi/etude.cdef"

WIDTHS = ("8", "16", "32", "64")
PLAIN = {f"{sign}int{bits}_t": f"{'u' if sign else 'i'}{bits}" for sign in ("", "u") for bits in WIDTHS}
TYPES = {**PLAIN, "size_t": "usize", "bool": "bool", "char": "c_char", "void": "c_void", "double": "f64", "float": "f32", "int": "c_int"}
#: Names that are words of Rust's, or of its habits.
RENAMED = {"self": "this", "type": "type_", "as": "payload", "move": "move_", "ref": "ref_"}
#: Types of constants, by the first pattern that fits; others are i32.
CONSTANTS = [
    (r"TENSOR_", "u16"),
    (r"SCOPE_|OPTION_(READ_ONLY|EFFECT_NOW|ALLOW_EMPTY)$|ABI_VERSION$|VERSION_", "u32"),
    (r".*_SIZE$|MAX_RANK$|MEMORY_ALIGNMENT$|ORIGIN_COUNT$", "usize"),
]


class Generator:
    """Reads declarations in their order and keeps what Rust needs of them."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.functions: list[str] = []
        self.layouts: list[str] = []
        self.constants: dict[str, int] = {}
        self.plain: set[str] = set()

    def constant(self, name: str, value: int, kind: str | None = None) -> None:
        """A number with a name."""
        self.constants[name] = value
        short = name.removeprefix("ETUDE_")
        kind = kind or next((type_ for pattern, type_ in CONSTANTS if re.match(pattern, short)), "i32")
        text = hex(value) if kind == "etude_status" else str(value)
        self.out.append(f"pub const {short}: {kind} = {text};")

    def number(self, node: c_ast.Node) -> int:
        """The value of a constant expression."""
        match node:
            case c_ast.Constant():
                return int(re.sub(r"[uUlL]+$", "", node.value), 0)
            case c_ast.ID():
                return self.constants[node.name]
            case c_ast.BinaryOp(op="<<"):
                return self.number(node.left) << self.number(node.right)
        raise NotImplementedError(f"{node}")

    def type(self, node: c_ast.Node, *, argument: bool = False) -> str:
        """A type of C as one of Rust."""
        match node:
            case c_ast.TypeDecl():
                return self.type(node.type)
            case c_ast.IdentifierType():
                name = " ".join(node.names)
                return TYPES.get(name, name)
            case c_ast.Struct() | c_ast.Union():
                return str(node.name)
            case c_ast.PtrDecl(type=c_ast.FuncDecl()):
                return f'Option<unsafe extern "C" fn({self.arguments(node.type)}){self.result(node.type)}>'
            case c_ast.PtrDecl():
                constant = "const" in getattr(node.type, "quals", [])
                return f"*{'const' if constant else 'mut'} {self.type(node.type)}"
            case c_ast.ArrayDecl() if argument:
                return f"*mut {self.type(node.type)}"
            case c_ast.ArrayDecl():
                return f"[{self.type(node.type)}; {self.number(node.dim)}]"
        raise NotImplementedError(f"{node}")

    def arguments(self, node: c_ast.FuncDecl) -> str:
        """The parameters of a function."""
        params = node.args.params if node.args else []
        texts = []
        for i, param in enumerate(params):
            if isinstance(param, c_ast.EllipsisParam):
                texts.append("...")
            elif self.type(param.type, argument=True) != "c_void":
                texts.append(f"{rust_name(param.name or f'arg{i}')}: {self.type(param.type, argument=True)}")
        return ", ".join(texts)

    def result(self, node: c_ast.FuncDecl) -> str:
        """What a function returns."""
        text = self.type(node.type)
        return "" if text == "c_void" else f" -> {text}"

    def record(self, name: str, node: c_ast.Struct | c_ast.Union) -> None:
        """A struct or union."""
        if node.decls is None:
            self.out.append(f"#[repr(C)]\npub struct {name} {{\n    _opaque: [u8; 0],\n}}")
            return
        fields, layout = [], []
        for field in node.decls:
            inner = field.type.type if isinstance(field.type, c_ast.TypeDecl) else None
            if isinstance(inner, c_ast.Union) and inner.name is None:
                inner.name = f"{name}_payload"
                self.record(inner.name, inner)
            fields.append((rust_name(field.name), self.type(field.type)))
            layout.append(rust_name(field.name) + (f' = "{field.name}"' if field.name in RENAMED else ""))
        union = isinstance(node, c_ast.Union)
        plain = not union and all(text in PLAIN.values() for _, text in fields)
        derive = "Clone, Copy, Debug, Default" if plain else "Clone, Copy"
        lines = "".join(f"    pub {field}: {text},\n" for field, text in fields)
        self.out.append(f"#[repr(C)]\n#[derive({derive})]\npub {'union' if union else 'struct'} {name} {{\n{lines}}}")
        if not union:
            self.layouts.append(f"{name} {{ {', '.join(layout)} }};")

    def take(self, node: c_ast.Node) -> None:
        """One declaration of the file."""
        match node:
            case c_ast.Typedef(type=c_ast.TypeDecl(type=c_ast.Struct() | c_ast.Union())):
                self.record(node.name, node.type.type)
            case c_ast.Decl(type=c_ast.Struct() | c_ast.Union()):
                # declared before by a typedef
                self.out = [text for text in self.out if f"pub struct {node.type.name} {{\n    _opaque" not in text]
                self.record(node.type.name, node.type)
            case c_ast.Typedef():
                self.out.append(f"pub type {node.name} = {self.type(node.type)};")
            case c_ast.Decl(type=c_ast.Enum()):
                value = -1
                status = any(item.name == "ETUDE_OK" for item in node.type.values.enumerators)
                for item in node.type.values.enumerators:
                    value = value + 1 if item.value is None else self.number(item.value)
                    self.constant(item.name, value, "etude_status" if status else None)
            case c_ast.Decl(type=c_ast.FuncDecl()):
                self.functions.append(f"    pub fn {node.name}({self.arguments(node.type)}){self.result(node.type)};")
            case _:
                raise NotImplementedError(f"{node}")


def rust_name(name: str) -> str:
    """A name that Rust allows."""
    return RENAMED.get(name, name)


def generate(cdef: str) -> tuple[str, str]:
    """The bindings, and the list of layouts."""
    made = Generator()
    for name, value in re.findall(r"^#define (\w+) (\w+)$", cdef, re.M):
        made.constant(name, int(value, 0))
    text = re.sub(r"/\*.*?\*/|^#[^\n]*$", "", cdef, flags=re.M | re.S)
    known = "".join(f"typedef int {name};\n" for name in ("bool", "size_t", *PLAIN))
    for node in c_parser.CParser().parse(known + text).ext[len(PLAIN) + 2 :]:
        made.take(node)
    functions, layouts = "\n".join(made.functions), "\n        ".join(made.layouts)
    made.out.append(f'pub const NO_OFFSET: u64 = u64::MAX;\n\nextern "C" {{\n{functions}\n}}')
    head = "// Made by generate.py; do not edit.\n"
    body = "\n".join(made.out)
    return f"{head}{body}\n", f"{head}{{\n    compare!(golden, checked,\n        {layouts}\n    );\n}}\n"


def main() -> int:
    """Write the files, or compare them."""
    texts = generate(CDEF.read_text())
    stale = 0
    for path, text in zip((HERE / "src/bindings.rs", HERE / "tests/layouts.in"), texts, strict=True):
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path.name} does not fit the headers: run python/cffi/cdef_from_headers.py", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
