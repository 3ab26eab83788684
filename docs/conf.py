"""Sphinx: four folders of Markdown, as a reader needs them."""

from __future__ import annotations

import re
from pathlib import Path

project = "amqp-mesh"
author = "The amqp-mesh authors"
copyright = "2026, the amqp-mesh authors"
_init = Path(__file__).parent.parent / "router" / "__init__.py"
release = re.search(r'__version__ = "(.+)"', _init.read_text(encoding="utf-8"))[1]
version = release

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nitpicky = True

html_theme = "furo"
html_title = f"amqp-mesh {release}"
html_static_path = ["_static"]
html_css_files = ["pictures.css"]
html_copy_source = False
