"""What `make docs` does besides MkDocs: links to files that are no pages lead to the repository."""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"(?<=\]\()(\.\./[^)\s#]*)")
LOG = logging.getLogger("mkdocs.site")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Called by MkDocs with the text of each page."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def target(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        if path.startswith("docs/"):
            return link[1]
        if not (ROOT / path).exists():
            LOG.warning("%s links to %s, which is not there", page.file.src_uri, link[1])
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{config.repo_url.rstrip('/')}/{kind}/main/{path}"

    return LINK.sub(target, markdown)
