"""Sphinx's configuration for the site of the documentation: `make site` builds it.

Owns how the pages look as a site. The pages themselves know nothing of it: they are plain Markdown, read as a
repository browser reads them, with the relative links they have there. Which pages there are, and their order, is in
sidebar.toml.
"""

from __future__ import annotations

import html
import shutil
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import download_reference, toctree
from sphinx.application import Sphinx

HERE = Path(__file__).resolve().parent
SIDEBAR: dict[str, list[str]] = tomllib.loads((HERE / "sidebar.toml").read_text())
MAX_DESCRIPTION_LENGTH = 160
#: Characters of code that fit into a line of a list on a screen of 360 pixels.
MAX_UNBROKEN_LENGTH = 32

# pages ----------------------------------------------------------------------------------------------------------------

project = "platform"
language = "en"
root_doc = "README"
include_patterns = ["README.md", *(page for pages in SIDEBAR.values() for page in pages)]
# Folders that need not be searched for pages.
exclude_patterns = [".*", "build", "composeplat", "tests"]

# Markdown -------------------------------------------------------------------------------------------------------------

extensions = ["myst_parser"]
# As a repository browser makes them.
myst_heading_anchors = 6
# No syntax of MyST's own: what a repository browser shows as text is text.
myst_disable_syntax = ["myst_block_break", "myst_line_comment", "myst_role", "myst_target"]
# `--option` and "quoted" are shown as they are written.
smartquotes = False

# HTML -----------------------------------------------------------------------------------------------------------------

html_theme = "furo"
html_title = project
html_favicon = "static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
# A browser reads no other page for a search result's text where the site is opened as files.
html_js_files = [
    (None, {"body": "if (location.protocol === 'file:') DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false"})
]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_use_index = False
html_scaled_image_link = False


def _page_name(page: str) -> str:
    return page.removesuffix(".md")


def add_sidebar(app: Sphinx, doctree: nodes.document) -> None:
    """Add the sidebar to the front page, from where the theme takes it."""
    name = app.env.docname
    if name != root_doc:
        return
    for task, pages in SIDEBAR.items():
        doctree += toctree(
            parent=name,
            caption=task,
            rawcaption=task,
            entries=[(None, _page_name(page)) for page in pages],
            includefiles=[_page_name(page) for page in pages],
            glob=False,
            hidden=True,
            includehidden=False,
            maxdepth=1,
            numbered=0,
            titlesonly=True,
        )


def frame_recordings(app: Sphinx, doctree: nodes.document) -> None:
    """Put each recording into a frame, which scrolls where the screen is narrow, with its file to play below."""
    for image in list(doctree.findall(nodes.image)):
        frame = nodes.container(classes=["recording"])
        paragraph = image.parent
        paragraph.replace_self(frame)
        frame += image
        recording = Path(image["uri"]).with_suffix(".cast")
        if (Path(app.env.doc2path(app.env.docname)).parent / recording).exists():
            frame.parent.insert(frame.parent.index(frame) + 1, _play(str(recording)))


def _play(recording: str) -> nodes.paragraph:
    link = download_reference("", Path(recording).name, reftarget=recording)
    play = nodes.literal(text="asciinema play")
    return nodes.paragraph("", "Play it in a terminal: ", link, nodes.Text(" with "), play, nodes.Text("."))


def mark_long_words(_app: Sphinx, doctree: nodes.document) -> None:
    """Mark code within a text that may have to be broken, as it is longer than the line of a narrow screen."""
    for code in doctree.findall(nodes.literal):
        if max(map(len, code.astext().split()), default=0) > MAX_UNBROKEN_LENGTH:
            code["classes"].append("long")


def _description(doctree: nodes.document) -> str:
    paragraphs = (p for p in doctree.findall(nodes.paragraph) if isinstance(p.parent, nodes.section))
    text = " ".join(next((p.astext() for p in paragraphs), "").split())
    if len(text) <= MAX_DESCRIPTION_LENGTH:
        return text
    return text[:MAX_DESCRIPTION_LENGTH].rpartition(" ")[0] + " …"


def add_description(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Describe the page by its first paragraph, for search engines and previews of links."""
    # The page that searches is made of no document.
    text = _description(doctree) if doctree else "Search the documentation"
    context["metatags"] = context.get("metatags", "") + f'<meta name="description" content="{html.escape(text)}">'


def add_index(app: Sphinx, error: Exception | None) -> None:
    """Serve the front page where a web server looks for it."""
    if not error:
        shutil.copyfile(app.outdir / f"{root_doc}.html", app.outdir / "index.html")


def setup(app: Sphinx) -> None:
    # Before Sphinx's own collectors, which run at 500.
    app.connect("doctree-read", add_sidebar, priority=400)
    app.connect("doctree-read", frame_recordings, priority=400)
    app.connect("doctree-read", mark_long_words)
    app.connect("html-page-context", add_description)
    app.connect("build-finished", add_index)
