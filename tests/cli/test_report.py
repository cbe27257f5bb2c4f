"""`sohot report`: where it writes, what it prints, how it refuses."""

import pytest


def test_it_writes_a_page_beside_the_run_and_says_where(sohot, run_copy):
    ended = sohot("report", run_copy, "--images", 4)
    assert ended.code == 0
    page = (run_copy / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "report.html: report of the run" in ended.out
    assert ended.err == ""  # the run stored what the page shows
    assert page.count('<figure class="picture') == 4


def test_an_older_run_is_shown_to_its_network_again_with_progress(sohot, run_copy):
    (run_copy / "test_outputs.safetensors").unlink()
    ended = sohot("report", run_copy, "--images", 4)
    assert ended.code == 0
    assert "testing: " in ended.err
    assert (run_copy / "report.html").read_text(encoding="utf-8").count('<figure class="picture') == 4


def test_figures_of_a_run_are_drawn_as_files(sohot, run_copy, tmp_path):
    folder = tmp_path / "figures"
    assert sohot("report", run_copy, "--figures", folder, "--quiet").code == 0
    drawn = ("confusion", "confidence", "pca", "tsne")
    names = {f"{name}.{form}" for name in drawn for form in ("png", "svg")}
    assert {file.name for file in folder.iterdir()} == names
    assert (folder / "pca.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_the_one_thing_on_standard_output(sohot, run_copy, tmp_path):
    out = tmp_path / "page.html"
    ended = sohot("report", run_copy, "--out", out, "--images", 0, "--quiet", "--json")
    assert ended.json == {"path": str(run_copy), "kind": "run", "report": str(out), "bytes": out.stat().st_size}
    assert ended.err == ""
    assert not (run_copy / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("{run} --figures {tmp}/f --images 0", "images must not be 0"),
        ("{run} --figures {tmp}/file", "is a file"),
        ("{run} --out {tmp}/no/page.html", "does not exist"),
        ("{tmp}/missing", "missing: there is no such folder"),
        ("{tmp}", "holds no run (run.json), demo (demo.json) or experiment"),
        ("{tmp}/head", "holds a head on features, which has no page"),
    ],
)
def test_a_wrong_call_ends_in_a_sentence_before_any_work(sohot, trained, tmp_path, words, sentence):
    (tmp_path / "file").touch()
    (tmp_path / "head").mkdir()
    (tmp_path / "head" / "model.safetensors").touch()
    ended = sohot("report", *words.format(run=trained[0], tmp=tmp_path).split())
    assert (ended.code, ended.out) == (2, "")
    assert sentence in ended.last
    assert "checking" not in ended.err
