"""The site: its reference is complete, and its links are checked."""

import re
import runpy
from importlib import import_module
from pathlib import Path

import pytest

import sohot

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
COMMANDS = {"api", "app", "cli"}  # described by their commands, and by what `import sohot` offers
PACKAGES = {path.parent.name for path in (ROOT / "src" / "sohot").glob("*/__init__.py")} - COMMANDS
LINKS = runpy.run_path(str(DOCS / "_site" / "links.py"))


def test_the_reference_has_a_page_for_each_package() -> None:
    index = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    assert set(index.split()) >= PACKAGES
    for name in PACKAGES:
        assert import_module(f"sohot.{name}").__all__
        assert f"automodule:: sohot.{name}\n" in (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")


def test_the_reference_names_all_that_import_sohot_offers() -> None:
    page = (DOCS / "reference" / "sohot.md").read_text(encoding="utf-8")
    offered = set(sohot.__all__) - PACKAGES - {"__version__"}
    assert offered <= set(re.findall(r"\w+", page))


def test_the_gallery_is_ordered_and_complete() -> None:
    scripts = {path.name for path in (ROOT / "examples" / "gallery").glob("*.py")}
    assert set(re.findall(r'"(\w+\.py)"', (DOCS / "conf.py").read_text(encoding="utf-8"))) == scripts
    assert len(scripts) >= 6


def site(folder: Path, **pages: str) -> list[str]:
    for name, text in {"index": "<p id='top'>", **pages}.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return list(LINKS["problems"](folder))


def test_links_that_lead_somewhere_are_no_problem(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("text")
    good = '<a href="index.html#top"></a><a href="a%20b.txt"></a><a href="#here" id="here"></a>'
    assert site(tmp_path, page=good, other='<a href="https://example.org/x">x</a><a href="mailto:a@b.c">y</a>') == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<a href="missing.html">', "missing.html leads nowhere"),
        ('<a href="index.html#middle">', "index.html#middle names a part that is not there"),
        ('<img src="missing.png">', "missing.png leads nowhere"),
        ('<script src="https://cdn.example.org/a.js">', "is needed to show the page, but comes from elsewhere"),
        ('<link rel="stylesheet" href="//fonts.example.org/a.css">', "is needed to show the page"),
        ('<a href="http:/typo">', "http:/typo is no address"),
    ],
)
def test_links_that_do_not(tmp_path: Path, text: str, problem: str) -> None:
    (found,) = site(tmp_path, page=text)
    assert found.startswith("page.html: ")
    assert problem in found


def test_the_checker_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert LINKS["main"]([str(tmp_path)]) == 2
    site(tmp_path, page='<a href="missing.html">')
    assert LINKS["main"]([str(tmp_path)]) == 1
    assert "2 pages, 1 broken links, 0 addresses" in capsys.readouterr().out
