"""What mkdocs does not do by itself: links out of docs/ into the repository, and a list of links to elsewhere.

A page may link to a file of the repository (`../include/etude/kernel.h`), which a site does not have: the link becomes the file's name. One
that is not there is an error, as every broken link is. Links to other sites are listed, and not fetched. A link that is named by its file,
as reads well in a checkout, gets the title of the page.
"""

import logging
import os
import re
from pathlib import Path
from typing import Any

log = logging.getLogger("mkdocs.hooks.site")
ROOT = Path(__file__).resolve().parent.parent
elsewhere: dict[str, set[str]] = {}


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with names of files where it links into the repository."""

    def name_of(link: re.Match[str]) -> str:
        target = (ROOT / "docs" / link[2].split("#")[0]).resolve()
        if not target.exists():
            log.warning("%s: there is no %s", page.file.src_path, link[2])
        path = f"`{os.path.relpath(target, ROOT)}`"
        return path if link[1].strip("`") == target.name else f"{link[1]} ({path})"

    def title_of(link: re.Match[str]) -> str:
        target = ROOT / "docs" / link[1]
        title = target.read_text().split("\n", 1)[0].removeprefix("# ") if target.exists() else link[1]
        return f"[{title}]({link[1]})"

    for url in re.findall(r"https?://[^\s)>`\"']+", markdown):
        elsewhere.setdefault(url, set()).add(page.file.src_path)
    markdown = re.sub(r"\[([\w-]+\.md)\]\(\1\)", title_of, markdown)
    return re.sub(r"\[([^\]\n]+)\]\((\.\./[^)\s]+)\)", name_of, markdown)


def on_post_build(**_: Any) -> None:
    """Say where the pages lead."""
    for url, pages in sorted(elsewhere.items()):
        print(f"link, not fetched: {url} ({', '.join(sorted(pages))})")
