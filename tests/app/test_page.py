"""The page in a real browser: images are dropped, labels corrected, a new model trained and used; by mouse and keys."""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from local_app import App, picture
from made_up_results import EVIL_CLASS
from real_browser import Opened, real_browser

from sohot.app.session import Session
from sohot.runs.split_file import read_sides

PHONE, DESK = {"width": 400, "height": 800}, {"width": 1400, "height": 1000}
EVIL_NAME = "<img src=x onerror=alert(1)>.png"
DROP = """files => {
    const transfer = new DataTransfer();
    for (const [name, content] of files) {
        const bytes = Uint8Array.from(atob(content), letter => letter.charCodeAt(0));
        transfer.items.add(new File([bytes], name, {type: 'image/png'}));
    }
    const zone = document.getElementById('drop');
    for (const kind of ['dragenter', 'dragover', 'drop'])
        zone.dispatchEvent(new DragEvent(kind, {dataTransfer: transfer, bubbles: true, cancelable: true}));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with real_browser() as opened:
        yield opened


@pytest.fixture
def load(browser: Any, app: App) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def opened(size: dict[str, int] = DESK) -> Opened:
        contexts.append(browser.new_context(viewport=size))
        found = Opened(contexts[-1].new_page())
        found.page.goto(app.address)
        found.page.locator("#run-name", has_text="first").wait_for()
        return found

    yield opened
    for context in contexts:
        context.close()


def status(page: Any, words: str, place: str = "upload-status") -> None:
    page.locator(f"#{place}", has_text=words).wait_for()


def drop_folder(page: Any, folder: Path) -> None:
    """Drop a folder as a file manager does."""
    devtools, place = page.context.new_cdp_session(page), page.locator("#drop").bounding_box()
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        where = {"x": place["x"] + 20, "y": place["y"] + 20}
        devtools.send("Input.dispatchDragEvent", {"type": kind, **where, "data": data})


def test_an_image_is_dropped_its_label_corrected_and_the_new_model_trained_and_used(
    load: Any, app: App, session: Session, run: Path
) -> None:
    opened = load()
    page = opened.page
    tested = read_sides(run / "split.json")["target_test"]
    dropped = [
        ("seen.png", tested.files[0].read_bytes()),
        (EVIL_NAME, picture(3)),
        ("notes.png", b"<svg onload=alert(1)>"),
    ]
    page.evaluate(DROP, [(name, base64.b64encode(content).decode()) for name, content in dropped])
    status(page, "2 images are here, 1 refused.")
    assert "notes.png cannot be read: it is not an image" in page.locator("#upload-refused").inner_text()
    assert [card.inner_text() for card in page.locator(".name").all()] == ["seen.png", EVIL_NAME]
    card = page.locator(".card").first
    assert card.locator(".top li").count() == 3
    said = [float(share.rstrip(" %")) for share in card.locator(".share").all_inner_texts()]
    assert said == sorted(said, reverse=True)

    page.locator(".card").nth(1).locator(".look").click()
    page.locator("#closer svg .here").wait_for()
    assert page.locator(".neighbours img").count() == 8
    assert page.locator(".map svg .also").count() >= 1

    guess = card.locator(".top .label").first.inner_text()
    card.get_by_role("button", name=f"It is {guess}").click()
    page.locator("#labelled-words", has_text="1 labelled image").wait_for()
    right = EVIL_CLASS if guess != EVIL_CLASS else "mug"
    card.get_by_label("Label").select_option(right)
    page.locator("#labelled-words", has_text=f"({right}: 1)").wait_for()
    key = str(card.get_attribute("data-key"))
    assert [file.parent.name for file in (run / "app" / "labelled").rglob("*.png")] == [right]

    page.get_by_role("button", name="Train again").click()
    status(page, "The new run first-2 is trained.", "training-status")
    assert page.locator("#curves polyline").count() == 3
    table = page.locator("#training-result table")
    assert f"on the {len(tested) - 1} images that tested both" in table.inner_text()
    page.get_by_role("button", name="Use first-2").click()
    page.locator("#run-name", has_text="first-2").wait_for()
    assert session.run.folder == run.with_name("first-2")
    new = read_sides(run.with_name("first-2") / "split.json")
    assert session.labelled.images().files[0] in new["target_train"].files
    assert tested.files[0] not in new["target_test"].files
    answer = session.answer(key)
    page.locator(".card").first.locator(
        ".share", has_text=f"{100 * answer['top'][0]['probability']:.0f} %"
    ).first.wait_for()

    page.locator("#compare").click()
    status(page, "that tested both.", "compare-words")
    assert page.locator("#comparison table").count() == 2
    assert page.locator("script").count() == 1
    assert page.locator("img[src=x]").count() == 0
    assert all(url.startswith(app.address) for url in opened.asked)
    assert opened.said == [
        "error: Failed to load resource: the server responded with a status of 415 (Unsupported Media Type)"
    ]


def test_keys_alone_do_everything(load: Any, tmp_path: Path, session: Session) -> None:
    opened = load()
    page = opened.page
    (tmp_path / "a.png").write_bytes(picture(1))

    def press(key: str, until: str) -> None:
        """Press a key until an element has the focus."""
        for _ in range(40):
            page.keyboard.press(key)
            if page.evaluate("css => document.activeElement.matches(css)", until):
                return
        pytest.fail(f"{until} cannot be reached")

    page.on("filechooser", lambda chooser: chooser.set_files(tmp_path / "a.png"))
    press("Tab", "#files")
    page.keyboard.press("Enter")
    status(page, "1 image is here.")
    press("Tab", "#suggest")
    page.keyboard.press("Enter")
    status(page, "1 image is suggested")
    assert "Label this" in page.locator(".why").inner_text()
    press("Tab", ".confirm")
    page.keyboard.press("Enter")
    page.locator("#labelled-words", has_text="1 labelled image").wait_for()
    assert page.evaluate("document.activeElement.matches('.card select')")
    (guess,) = session.labelled.counts()
    page.locator(".card select:focus").press("ArrowUp" if guess == session.labelled.classes[-1] else "ArrowDown")
    page.locator("#labelled-words", has_not_text=f"({guess}: 1)").wait_for()
    assert {*session.labelled.counts()} != {guess}
    press("Tab", ".look")
    page.keyboard.press("Enter")
    page.locator("#closer:focus").wait_for()
    press("Tab", "#closer-back")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.matches('.look')")
    press("Tab", "#train")
    press("Shift+Tab", ".remove")
    page.keyboard.press("Enter")
    page.locator(".card").wait_for(state="detached")
    assert len(session.labelled) == 0
    assert opened.said == []


def test_a_label_outlives_an_answer_that_was_under_way(load: Any, tmp_path: Path, session: Session) -> None:
    page = load().page
    (tmp_path / "a.png").write_bytes(picture(1))
    page.set_input_files("#files", tmp_path / "a.png")
    status(page, "1 image is here.")
    held = []

    def hold(route: Any) -> None:
        """Let the app answer, and keep the answer back."""
        if route.request.method == "GET":
            held.append((route, route.fetch()))
        else:
            route.continue_()

    page.route("**/api/images/*", hold)
    page.locator("#suggest").click()
    status(page, "1 image is suggested")
    while not held:
        page.wait_for_timeout(20)
    page.locator(".confirm").click()
    page.locator("#labelled-words", has_text="1 labelled image").wait_for()
    (guess,) = session.labelled.counts()
    with page.expect_response("**/api/images/*"):
        held[0][0].fulfill(response=held[0][1])
    page.locator("#suggest:enabled").wait_for()  # the answer was taken
    assert page.locator(".card select").input_value() == guess
    assert page.locator(".confirm").is_hidden()


def test_a_phone_scrolls_down_alone(load: Any, tmp_path: Path) -> None:
    page = load(PHONE).page
    names = ["a.png", "a-long-name-without-any-space-" * 5 + ".png"]
    (tmp_path / "given" / "inner").mkdir(parents=True)
    for seed, (folder, name) in enumerate(zip(("given", "given/inner"), names, strict=True)):
        (tmp_path / folder / name).write_bytes(picture(seed))
    (tmp_path / "given" / "notes.txt").write_text("no image")
    drop_folder(page, tmp_path / "given")
    status(page, "2 images are here.")
    assert page.locator("#upload-refused").inner_text() == "1 file is not an image"
    assert page.locator(".name").all_inner_texts() == [f"given/{names[0]}", f"given/inner/{names[1]}"]
    page.set_input_files("#folder", tmp_path / "given")  # the same images again
    page.locator(".card").nth(1).wait_for()
    page.locator(".look").first.click()
    page.locator("#closer svg").first.wait_for()
    assert page.locator(".card").first.locator("#closer").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    wide = page.evaluate(
        "[...document.querySelectorAll('main *')].filter(one => !one.closest('.scroll') && "
        "one.getBoundingClientRect().right > 401).map(one => one.outerHTML.slice(0, 80))"
    )
    assert wide == []
    small = page.evaluate(
        "[...document.querySelectorAll('button, select, .button')].filter(one => one.offsetParent && "
        "one.getBoundingClientRect().height < 36).map(one => one.outerHTML.slice(0, 80))"
    )
    assert small == []
    page.locator(".remove").first.click()  # the image that is looked at
    page.locator(".look").nth(1).wait_for(state="detached")
    page.locator(".look").click()
    page.locator("#closer").wait_for()
    page.reload(wait_until="commit")  # files that are given before the page knows its run wait for it
    (tmp_path / "early.png").write_bytes(picture(9))
    page.set_input_files("#files", tmp_path / "early.png")
    page.locator(".name", has_text="early.png").wait_for()
