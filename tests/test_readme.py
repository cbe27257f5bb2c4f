"""What the README and the pages show in Python runs as it stands, and their links lead somewhere."""

import re
from functools import partial
from pathlib import Path

import pytest
from command_line import write_images

import sohot

README = Path(__file__).parent.parent / "README.md"
PAGES = [README, *(README.parent / "docs" / f"{name}.md" for name in ("python", "start", "mathematics"))]
BLOCKS = [
    block
    for page in PAGES
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
]


@pytest.fixture
def _two_domains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the names in the examples, and a small network in place of the default, which takes a minute."""
    for seed, name in enumerate(("photos", "sketches", "new_sketches", "other_sketches")):
        write_images(tmp_path / name, 5, 10 * seed, seed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sohot, "fit", partial(sohot.fit, backbone="small-cnn", image_size=16, steps=2, loggers="none"))


@pytest.mark.usefixtures("_two_domains")
@pytest.mark.parametrize("code", BLOCKS)
def test_python_blocks_run(code: str) -> None:
    exec(compile(code, str(README), "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_there_are_blocks_to_run(page: Path) -> None:
    assert "```python\n" in page.read_text(encoding="utf-8")


def headings(page: Path) -> set[str]:
    """Give the anchors of a page: its headings in lower case, blanks as hyphens, without other marks."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [README, *sorted((README.parent / "docs").rglob("*.md"))], ids=lambda page: page.name)
def test_relative_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link, anchor in re.findall(r"(?:\]\(|src=\")([^)#:\s\"]*)(?:#([^)\s]+))?[)\"]", text):
        found = page.parent / link if link else page
        if found.parent.name == "gallery":  # these pages are made of the scripts when the site is built
            found = README.parent / "examples" / "gallery" / f"{found.stem}.py"
        assert found.exists(), link
        assert not anchor or anchor in headings(found), f"{link}#{anchor}"
