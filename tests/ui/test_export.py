"""The page as files: which files are written, which folders are refused, and that the data stays data."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from composeplat.diagnostics import ComposeplatError
from composeplat.ui.export import read_page, write_page
from tests import schemas
from tests.ui import documents

HOSTILE = "</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)> \u2028 \ud800 \x1b[31m"


def written(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def data_of(folder: Path) -> object:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', (folder / "index.html").read_text())
    assert found
    return json.loads(found[1])


def test_files(tmp_path: Path) -> None:
    """The page is written with its style and scripts, all of which its markup names."""
    write_page(tmp_path / "a" / "page", documents.exported())

    assert written(tmp_path / "a" / "page") == sorted(read_page())
    assert {"index.html", "page.css", "js/app.js", "icon.svg"} <= set(read_page())
    assert data_of(tmp_path / "a" / "page") == documents.exported()


def test_every_script_is_used() -> None:
    """No script is left that the page does not load, but that of the server's own page."""
    folder = Path(__file__).resolve().parents[2] / "composeplat" / "ui" / "page"

    assert {path.name for path in (folder / "js").glob("*.js")} - {"sign-in.js"} == {
        path.removeprefix("js/") for path in read_page() if path.startswith("js/")
    }


def test_data_is_text(tmp_path: Path) -> None:
    """A text in the data ends no script, and comes back as it was."""
    write_page(tmp_path, {"page": HOSTILE})

    text = (tmp_path / "index.html").read_bytes()
    assert text.count(b"</script>") == len(read_page()) - 2
    assert b"<img" not in text
    assert text.isascii()
    assert data_of(tmp_path) == {"page": HOSTILE}


def test_policy(tmp_path: Path) -> None:
    """The policy is before everything that it is about, and allows no connection."""
    write_page(tmp_path, {})

    text = (tmp_path / "index.html").read_text()
    assert 0 < text.index("Content-Security-Policy") < text.index('id="data"') < text.index("page.css")
    assert "connect-src 'none'" in text


def test_written_again(tmp_path: Path) -> None:
    """An earlier export is replaced, with its files that are no longer part of the page."""
    write_page(tmp_path, {"page": 1})
    index = tmp_path / "index.html"
    index.write_text(index.read_text().replace("js/text.js", "js/old.js"))
    (tmp_path / "js" / "text.js").rename(tmp_path / "js" / "old.js")

    write_page(tmp_path, {"page": 2})

    assert written(tmp_path) == sorted(read_page())
    assert data_of(tmp_path) == {"page": 2}


@pytest.mark.parametrize("name", ["notes.txt", "index.html", "js/app.js", ".git/config"])
def test_other_files(tmp_path: Path, name: str) -> None:
    """A folder with files of something else is left as it is."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")

    with pytest.raises(ComposeplatError, match=f"has files that are no earlier export: '{name}'") as raised:
        write_page(tmp_path, {})

    assert "empty" in raised.value.hint
    assert written(tmp_path) == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_a_file_beside_an_earlier_export(tmp_path: Path) -> None:
    """A file that came later is not overwritten either."""
    write_page(tmp_path, {"page": 1})
    (tmp_path / "js" / "mine.js").write_text("mine")

    with pytest.raises(ComposeplatError, match=r"'js/mine\.js'"):
        write_page(tmp_path, {"page": 2})

    assert data_of(tmp_path) == {"page": 1}


def test_links(tmp_path: Path) -> None:
    """A link to a folder or file elsewhere is not followed."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = tmp_path / "page"
    write_page(folder, {})
    for path in (folder / "js").iterdir():
        path.unlink()
    (folder / "js").rmdir()
    (folder / "js").symlink_to(elsewhere)

    with pytest.raises(ComposeplatError, match="'js'"):
        write_page(folder, {})

    assert list(elsewhere.iterdir()) == []


def test_a_file_in_the_way(tmp_path: Path) -> None:
    """A path that is a file is an error with a hint."""
    (tmp_path / "page").write_text("")

    with pytest.raises(ComposeplatError, match="can't write the page to") as raised:
        write_page(tmp_path / "page", {})

    assert "--export" in raised.value.hint


def test_a_folder_where_nobody_may_write() -> None:
    """A folder that can't be made is an error: in sysfs the kernel refuses root, too."""
    with pytest.raises(ComposeplatError, match="can't write the page to '/sys/page': "):
        write_page(Path("/sys/page"), {})


def test_documents_of_these_tests() -> None:
    """The documents that the tests of the page show are like those that commands print."""
    for document in (documents.events(), documents.history(), documents.preview()):
        schemas.checked(document)
