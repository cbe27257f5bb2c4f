"""What the page may ask for, over a real connection; and what it may not."""

import io
from collections.abc import Callable
from pathlib import Path

from local_app import App, picture
from made_up_results import CLASSES, EVIL_CLASS, add_pool
from PIL import Image

from sohot.app.dropped_images import MOST_BYTES
from sohot.app.session import Session
from sohot.runs import classify, open_model


def test_labels_are_those_of_predict(app: App, session: Session, drop: Callable[..., str]) -> None:
    for seed in range(3):
        key = drop(seed)
        _, said = app.ask("GET", f"api/images/{key}")
        (wanted,), _ = classify(open_model(session.home), [session.dropped.find(key).file], top=3)
        assert [one["label"] for one in said["top"]] == list(wanted.labels)
        assert abs(said["top"][0]["probability"] - wanted.probabilities[0]) < 1e-6
        assert len(said["neighbours"]["source"]) == len(said["neighbours"]["target"]) == 4
        assert len(said["place_on_map"]) == 2


def test_everything_but_the_answers_is_in_the_state(app: App, run: Path, drop: Callable[..., str]) -> None:
    key = drop(name="%3Cb%3E")
    app.ask("PUT", f"api/images/{key}/label", {"label": EVIL_CLASS})
    _, state = app.ask("GET", "api/state")
    assert state["images"] == [{"key": key, "name": "<b>", "label": EVIL_CLASS}]
    assert state["labelled"] == {EVIL_CLASS: 1}
    assert state["run"]["name"] == "first"
    assert {*state["run"]["classes"]} == {*CLASSES}
    assert state["run"]["calibration"] == "not calibrated"
    assert state["runs"] == []
    assert (run / "app" / "labelled" / EVIL_CLASS / f"{key}.png").is_file()


def test_pictures_are_small_jpegs_of_our_own(app: App, drop: Callable[..., str]) -> None:
    _, big = app.ask("PUT", "api/images?name=a", picture(size=(900, 500), kind="BMP"))
    for path in (f"images/{big['key']}", f"images/{drop()}", "run-images/source/0", "run-images/test/1"):
        answer, content = app.ask("GET", path)
        assert answer.headers["content-type"] == "image/jpeg"
        with Image.open(io.BytesIO(content)) as image:
            assert image.format == "JPEG"
            assert max(image.size) <= 320


def test_what_is_not_there_is_not_found(app: App, run: Path) -> None:
    (run / "app" / "dropped").mkdir(exist_ok=True)
    (run / "app" / "dropped" / ("a" * 32)).write_text("secret")
    wrong = ["assets/..%2froutes.py", "assets/%2e%2e%2f%2e%2e%2fsession.py", "assets/", "assets", "nothing"]
    wrong += ["images/..%2f..%2frun.json", f"images/{'a' * 32}", "images/dropped.json", "api/images/..%2f..%2frun.json"]
    wrong += ["run-images/source/999", "run-images/source/-1", "run-images/nowhere/0", "run-images/..%2f/0"]
    wrong += ["api/comparison?with=/etc", "api/comparison", "api/comparison?with=.."]
    for path in wrong:
        answer, _ = app.ask("GET", path)
        assert answer.status == 404, path
    assert app.ask("PUT", "api/run", {"run": "/etc"})[0].status == 404
    assert app.ask("POST", "api/state")[0].status == 405


def test_wrong_requests_are_refused_in_a_sentence(app: App, session: Session, drop: Callable[..., str]) -> None:
    key = drop()
    wrong = [
        ("PUT", f"api/images/{key}/label", {"label": "plate"}, 400, "'plate' is not a class"),
        ("PUT", f"api/images/{key}/label", {"label": 3}, 400, "not understood"),
        ("PUT", f"api/images/{key}/label", [], 400, "not understood"),
        ("PUT", f"api/images/{key}/label", b"[" * 60_000, 400, "nested too deeply"),
        ("PUT", f"api/images/{key}/label", b"[" * 70_000, 413, "too long"),
        ("PUT", f"api/images/{'0' * 32}/label", {"label": "mug"}, 404, "it was removed"),
        ("DELETE", f"api/images/{'0' * 32}", None, 404, "it was removed"),
        ("PUT", "api/images?name=a.png", b"<svg/>", 415, "a.png cannot be read: it is not an image"),
        ("PUT", "api/images?name=a.png", bytes(MOST_BYTES + 1), 413, "larger than 25 MB"),
        ("POST", "api/suggestions", {"where": "pool", "count": 3}, 400, "has no unlabelled images of its own"),
        ("POST", "api/suggestions", {"where": "dropped", "count": 51}, 400, "must lie in 1 … 50, got 51"),
        ("POST", "api/suggestions", {"where": "/etc", "count": 1}, 400, "of those dropped"),
        ("POST", "api/training", None, 400, "no image has a label yet"),
    ]
    for method, path, body, status, sentence in wrong:
        answer, said = app.ask(method, path, body)
        assert (answer.status, sentence in said["error"]) == (status, True), said
    assert len(session.dropped) == 1


def test_a_long_body_is_not_read_whatever_it_says_of_its_length(app: App) -> None:
    answer, said = app.ask("PUT", "api/images?name=a", b"x", Content_Length=str(10**12))
    assert (answer.status, said["error"]) == (413, "the file is larger than 25 MB")


def test_suggestions_leave_out_what_has_a_label(app: App, drop: Callable[..., str]) -> None:
    keys = [drop(seed) for seed in range(4)]
    app.ask("PUT", f"api/images/{keys[0]}/label", {"label": "mug"})
    _, said = app.ask("POST", "api/suggestions", {"where": "dropped", "count": 4})
    assert {one["key"] for one in said["suggested"]} == {*keys[1:]}
    assert all(one["why"] for one in said["suggested"])
    app.ask("DELETE", "api/images")
    _, said = app.ask("GET", "api/state")
    assert [one["key"] for one in said["images"]] == keys[:1]
    answer, said = app.ask("POST", "api/suggestions", {"where": "dropped", "count": 2})
    assert (answer.status, said["error"]) == (400, "all images have labels: drop others, and ask again")
    app.ask("DELETE", f"api/images/{keys[0]}")
    assert app.ask("GET", "api/state")[1]["labelled"] == {}


def test_the_pool_of_the_run_is_suggested_from(app: App, session: Session, run: Path, tmp_path: Path) -> None:
    add_pool(run, tmp_path / "found")
    pool = app.ask("GET", "api/state")[1]["pool"]
    _, said = app.ask("POST", "api/suggestions", {"where": "pool", "count": 50})
    assert len(said["suggested"]) == len(session.dropped) == pool > 5
    names = {path.relative_to(tmp_path / "found").as_posix() for path in (tmp_path / "found").rglob("*.png")}
    assert {one["name"] for one in said["suggested"]} <= names
