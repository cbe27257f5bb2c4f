"""`sohot report`: where it writes, what it prints, how it refuses."""

import json


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


def test_figures_that_cannot_be_are_refused(sohot, run_copy, tmp_path):
    (tmp_path / "file").touch()
    for options, sentence in (
        (("--figures", tmp_path / "f", "--images", 0), "images must not be 0"),
        (("--figures", tmp_path / "file"), "is a file"),
    ):
        ended = sohot("report", run_copy, *options)
        assert ended.code == 2
        assert sentence in ended.last


def test_json_is_the_one_thing_on_standard_output(sohot, run_copy, tmp_path):
    out = tmp_path / "page.html"
    ended = sohot("report", run_copy, "--out", out, "--images", 0, "--quiet", "--json")
    assert ended.json == {"path": str(run_copy), "kind": "run", "report": str(out), "bytes": out.stat().st_size}
    assert ended.err == ""
    assert not (run_copy / "report.html").exists()


def test_a_run_with_a_report_is_still_a_run(sohot, run_copy, trained):
    sohot("report", run_copy, "--images", 0)
    assert sohot("evaluate", run_copy, trained[1].test).code == 0
    assert json.loads((run_copy / "report.json").read_text())["steps"] == 40


def test_wrong_folders_are_named(sohot, tmp_path):
    ended = sohot("report", tmp_path / "missing")
    assert (ended.code, ended.out) == (2, "")
    assert "missing: there is no such folder" in ended.last
    ended = sohot("report", tmp_path)
    assert ended.code == 2
    assert "holds no run (run.json), demo (demo.json) or experiment" in ended.last
    (tmp_path / "model.safetensors").touch()
    ended = sohot("report", tmp_path)
    assert (ended.code, "holds a head on features, which has no page" in ended.last) == (2, True)


def test_a_file_that_cannot_be_written_is_named_before_any_work(sohot, run_copy, tmp_path):
    ended = sohot("report", run_copy, "--out", tmp_path / "no" / "page.html")
    assert ended.code == 2
    assert "does not exist" in ended.last
    assert "checking" not in ended.err
