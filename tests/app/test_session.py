"""What the page works on, also where a run keeps less, or another one is asked for."""

import json
import shutil
from pathlib import Path

import pytest
from local_app import picture

from sohot.app.dropped_images import Unknown
from sohot.app.session import Session
from sohot.runs import open_model


def test_images_and_labels_are_there_again(session: Session, run: Path) -> None:
    key = session.drop("a.png", picture(1))["key"]
    session.label(key, "mug")
    again = Session(run, run / "app", open_model).state()
    assert again["images"] == [{"key": key, "name": "a.png", "label": "mug"}]
    assert again["labelled"] == {"mug": 1}


def test_a_run_that_keeps_no_features_labels_without_neighbours(run: Path, tmp_path: Path) -> None:
    (run / "test_outputs.safetensors").unlink()
    session = Session(run, tmp_path, open_model)
    said = session.answer(session.drop("a.png", picture(1))["key"])
    assert len(said["top"]) == 3
    assert (said["neighbours"], said["place_on_map"], session.map()) == ({}, None, [])
    with pytest.raises(Unknown, match="no such image"):
        session.small_of_run("source", 0)


def test_a_second_run_from_anywhere_is_offered_and_one_of_other_classes_is_not_used(run: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(run, tmp_path / "elsewhere"))
    session = Session(run, tmp_path, open_model, other)
    state = session.state()
    assert [one["name"] for one in state["runs"]] == ["elsewhere"]
    assert state["compare_with"] == state["runs"][0]["key"]
    session.labelled.classes = ("cup", "mug")
    with pytest.raises(ValueError, match="elsewhere has other classes"):
        session.use(state["compare_with"])
    assert session.run.folder == run


def test_a_stranger_may_list_any_file_as_an_image_and_only_pictures_of_it_are_shown(run: Path, tmp_path: Path) -> None:
    split = json.loads((run / "split.json").read_text())
    name = split["sides"]["source_train"]["files"][0]
    secret = tmp_path / "secrets" / name
    secret.parent.mkdir(parents=True)
    secret.write_text("password")
    split["folders"]["source_train"] = str(tmp_path / "secrets")
    (run / "split.json").write_text(json.dumps(split))
    session = Session(run, tmp_path, open_model)
    with pytest.raises(ValueError, match="it is not an image") as refused:
        session.small_of_run("source", 0)
    assert "password" not in str(refused.value)
