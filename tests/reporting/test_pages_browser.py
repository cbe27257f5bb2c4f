"""Reports in a real browser: nothing fails, nothing is fetched, charts show, tables sort, phones and the dark work."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_up_results import EVIL_CLASS, EVIL_ERROR, EVIL_FILE, add_pool, make_experiment, make_run
from real_browser import Opened, real_browser

from sohot.demo import run_demo
from sohot.reporting.pages import write_report

PHONE, DESK = {"width": 375, "height": 800}, {"width": 1200, "height": 900}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with real_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("reports")
    experiment = make_experiment(root / "experiment", published="office-alexnet")
    demo = root / "demo"
    run_demo(demo, splits=2, steps=1, methods=["s+t", "so+to+fo+zeta"])
    reports = {"run": add_pool(make_run(root), root / "found"), "experiment": experiment, "demo": demo}
    return {name: write_report(folder) for name, folder in reports.items()}


@pytest.fixture
def load(browser: Any, reports: dict[str, Path]) -> Iterator[Any]:
    contexts = []

    def opened(name: str, size: dict[str, int] = DESK, scheme: str = "light") -> Opened:
        contexts.append(browser.new_context(viewport=size, color_scheme=scheme))
        found = Opened(contexts[-1].new_page())
        page = found.page
        page.goto(reports[name].as_uri())
        return found

    yield opened
    for context in contexts:
        context.close()


@pytest.mark.parametrize(
    ("name", "words"), [("run", [EVIL_CLASS, EVIL_FILE]), ("experiment", [EVIL_CLASS[:15], EVIL_ERROR])]
)
def test_it_loads_without_a_word_or_the_network_and_names_that_are_html_are_shown(
    load: Any, reports: dict[str, Path], name: str, words: list[str]
) -> None:
    opened = load(name)
    opened.page.emulate_media(media="print")
    opened.page.emulate_media(media="screen")
    opened.page.mouse.wheel(0, 20000)
    text = opened.page.evaluate("document.body.textContent")
    assert all(one in text for one in words)
    assert opened.page.locator("img[src=x]").count() == 0
    assert opened.page.locator("script").count() == 1
    charts = opened.page.locator(".chart svg").all()
    assert len(charts) > 3
    for chart in charts:
        box = chart.bounding_box()
        assert min(box["width"], box["height"]) > 80
    marks = "[...document.querySelectorAll('.chart svg [style*=\"--c0\"]')]"
    assert opened.page.evaluate(f"{marks}.filter(mark => mark.getBoundingClientRect().width).length") > 5
    assert [url for url in opened.asked if not url.startswith(("data:", "blob:"))] == [reports[name].as_uri()]
    assert opened.said == []


def column(page: Any, table: int, place: int) -> list[str]:
    cells = page.locator("table.sorts").nth(table).locator(f"tbody tr > :nth-child({place})")
    return [text.strip() for text in cells.all_inner_texts()]


def values(texts: list[str]) -> list[float]:
    """Read the numbers of a column, and check that what is missing stands last."""
    missing = [text == "–" for text in texts]
    assert missing == sorted(missing)
    return [float(text.split()[0].replace("−", "-")) for text in texts if text != "–"]


def test_tables_sort_by_click_and_by_key(load: Any) -> None:
    page = load("experiment").page
    heads = page.locator("table.sorts").first.locator("thead th")
    place = heads.all_inner_texts().index("A-W") + 1
    head = heads.nth(place - 1)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    found = values(column(page, 0, place))
    assert found == sorted(found, reverse=True)
    assert len(set(found)) > 5
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert values(column(page, 0, place)) == sorted(found)
    first = heads.first
    first.locator("button").focus()
    page.keyboard.press("Enter")
    assert first.get_attribute("aria-sort") == "ascending"
    assert head.get_attribute("aria-sort") is None
    names = [name.lower() for name in column(page, 0, 1)]
    assert names[0] <= names[1] <= names[-1]
    heads = page.locator("table.sorts").nth(1).locator("thead th")  # with negative numbers
    place = heads.all_inner_texts().index("from") + 1
    heads.nth(place - 1).locator("button").click()
    found = values(column(page, 1, place))
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0 < found[0]


def test_a_phone_shows_whole_tables(load: Any) -> None:
    cut = "[...document.querySelectorAll('.table-box')].filter(one => one.scrollHeight > one.clientHeight + 1).length"
    assert load("run", PHONE).page.evaluate(cut) == 0
    page = load("demo", PHONE).page
    assert page.evaluate(cut) == 0
    over = "(box => box.scrollWidth - box.clientWidth)(document.querySelector('.table-box'))"
    assert page.evaluate(over) == 0


@pytest.mark.parametrize("name", ["run", "experiment", "demo"])
def test_a_phone_scrolls_down_alone(load: Any, name: str) -> None:
    page = load(name, PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    wide = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(one => !one.closest('.scroll') && "
        "one.getBoundingClientRect().right > 376).map(one => one.outerHTML.slice(0, 80))"
    )
    assert wide == []
    assert float(page.evaluate("parseFloat(getComputedStyle(document.body).fontSize)")) >= 15
    widest = page.evaluate("Math.max(...[...document.querySelectorAll('.chart')].map(one => one.offsetWidth))")
    assert widest <= 375


def brightness(colour: str) -> float:
    """Relative luminance of a colour as the browser writes it, `rgb(1, 2, 3)`."""
    parts = [float(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_dark_is_dark_and_readable_and_charts_follow(load: Any) -> None:
    opened = load("experiment")
    page, grounds = opened.page, {}
    look = "css => (style => [style.color, style.fill])(getComputedStyle(document.querySelector(css)))"
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        for css in (".lead", ".kind", "nav a", ".described", "tbody td", "caption", "thead button"):
            assert contrast(page.evaluate(look, css)[0], ground) >= 4.5, (scheme, css)
        assert contrast(page.evaluate(look, ".chart svg text")[1], ground) >= 4.5, scheme
        grounds[scheme] = brightness(ground)
    assert grounds["dark"] < 0.05 < 0.9 < grounds["light"]
    assert opened.said == []


def test_a_script_that_slipped_in_would_not_run(load: Any) -> None:
    opened = load("run")
    opened.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hit = 1\">')")
    opened.page.evaluate(
        "const one = document.createElement('script'); one.textContent = 'window.hit = 2'; document.body.append(one)"
    )
    opened.page.wait_for_timeout(200)
    assert opened.page.evaluate("window.hit") is None
    assert any("Content Security Policy" in words for words in opened.said)


def test_without_scripts_all_is_shown(browser: Any, reports: dict[str, Path]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(reports["run"].as_uri())
    assert page.locator(".chart svg").first.is_visible()
    assert page.locator("table.sorts").first.is_visible()
    context.close()
