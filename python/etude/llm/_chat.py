"""Chat templates: the Jinja text that stands in a model's own tokenizer files."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from etude.errors import EtudeNotImplementedError, EtudeValueError

Message = Mapping[str, Any]


def find_template(tokenizer: Path) -> tuple[str | None, dict[str, str]]:
    """The template beside a tokenizer file, or None, and the special tokens by name ("bos_token": "<s>")."""
    folder = tokenizer if tokenizer.is_dir() else tokenizer.parent
    config: dict[str, Any] = {}
    path = folder / "tokenizer_config.json"
    if path.is_file():
        config = json.loads(path.read_text("utf-8"))
    template = config.get("chat_template")
    if isinstance(template, list):  # several by name
        named = {entry["name"]: entry["template"] for entry in template}
        template = named.get("default") or next(iter(named.values()), None)
    if (folder / "chat_template.jinja").is_file():
        template = (folder / "chat_template.jinja").read_text("utf-8")
    specials = {
        key: value if isinstance(value, str) else value["content"]
        for key, value in config.items()
        if key.endswith("_token") and (isinstance(value, str) or (isinstance(value, dict) and "content" in value))
    }
    return template, specials


def render(template: str, messages: Sequence[Message], specials: Mapping[str, str], *, answer: bool = True, **variables: Any) -> str:
    """The text of a conversation; with `answer` it ends where the model's turn begins.

    `messages` are dicts with "role" and "content". The template is the model author's code: it runs in a sandbox that can
    compute text and nothing else.
    """
    try:
        from jinja2 import TemplateError  # noqa: PLC0415
        from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415
    except ImportError:
        raise EtudeNotImplementedError("chat needs the package jinja2: pip install etude[llm]") from None

    def fail(message: str) -> None:
        raise TemplateError(message)

    def now(layout: str) -> str:
        return datetime.datetime.now().strftime(layout)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    environment.filters["tojson"] = lambda x, indent=None: json.dumps(x, ensure_ascii=False, indent=indent)
    environment.globals.update(raise_exception=fail, strftime_now=now)
    try:
        return environment.from_string(template).render(
            messages=list(messages), add_generation_prompt=answer, **{**specials, **variables}
        )
    except TemplateError as error:
        raise EtudeValueError(f"the model's chat template refuses these messages: {error}") from error
