"""Check the links of a built site without a connection: `python docs/_site/links.py build/docs`.

Every link inside the site must lead to a file, and to an element if it names one. Nothing that a page needs to be shown
may come from elsewhere. Links to other sites are counted and only checked for their form.
"""

import sys
from collections.abc import Iterable, Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_NEEDED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src"), ("video", "src")}
_UNCHECKED = {"mailto", "data", "javascript"}


class Page(HTMLParser):
    """The ids of a page and what it points to: where, and whether the page needs that to be shown."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, bool]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids and links of one element."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if name in ("href", "src") and value is not None:
                self.links.append((value, (tag, name) in _NEEDED))


def problems(site: Path) -> Iterator[str]:
    """Say what is wrong with the links of a site, in one sentence each."""
    for file in sorted(site.rglob("*.html")):
        page = _page(file)
        for link, needed in page.links:
            if problem := _problem(file, link, needed):
                yield f"{file.relative_to(site)}: {problem}"


def others(site: Path) -> set[str]:
    """Give the addresses of other sites that a site links to."""
    links = (link for file in site.rglob("*.html") for link, _ in _page(file).links)
    return {link for link in links if urlsplit(link).netloc}


def _problem(file: Path, link: str, needed: bool) -> str | None:
    parts = urlsplit(link)
    if parts.scheme in _UNCHECKED:
        return None
    if parts.scheme or parts.netloc:
        if needed:
            return f"{link} is needed to show the page, but comes from elsewhere"
        return None if parts.scheme in ("http", "https") and "." in parts.netloc else f"{link} is no address"
    place = file.parent / unquote(parts.path) if parts.path else file
    place = place / "index.html" if place.is_dir() else place
    if not place.is_file():
        return f"{link} leads nowhere"
    fragment = unquote(parts.fragment)
    if fragment and place.suffix == ".html" and fragment not in _page(place.resolve()).ids:
        return f"{link} names a part that is not there"
    return None


@cache
def _page(file: Path) -> Page:
    return Page(file.read_text(encoding="utf-8"))


def main(arguments: Iterable[str]) -> int:
    """Print what is wrong; return 1 if anything is, 2 if there is no site."""
    site = Path(next(iter(arguments), "build/docs"))
    if not (site / "index.html").is_file():
        print(f"there is no site in {site}: build it with `make docs`", file=sys.stderr)
        return 2
    found = list(problems(site))
    for problem in found:
        print(problem, file=sys.stderr)
    count = sum(1 for _ in site.rglob("*.html"))
    print(f"{count} pages, {len(found)} broken links, {len(others(site))} addresses of other sites (not visited)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
