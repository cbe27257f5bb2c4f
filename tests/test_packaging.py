"""What is built to be handed on: the wheel, the image, and the workflow that tests them name only what exists."""

import os
import re
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def lines_of(file: str, word: str) -> list[str]:
    """The arguments of each line of a file that begins with a word; continued lines count as one."""
    text = (ROOT / file).read_text(encoding="utf-8").replace("\\\n", " ")
    return [" ".join(line.split()[1:]) for line in text.splitlines() if line.split()[:1] == [word]]


def docker_defaults() -> dict[str, str]:
    return dict(argument.split("=") for argument in lines_of("Dockerfile", "ARG"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the files in the wheel."""
    if not find_spec("hatchling") and not os.environ.get("CI"):
        pytest.skip("needs hatchling")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file).namelist()


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel: list[str]) -> None:
    package = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "sohot").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in wheel if ".dist-info/" not in name} == package


def test_the_wheel_holds_types_grids_and_templates(wheel: list[str]) -> None:
    grids = {path.name for path in map(PurePosixPath, wheel) if path.match("sohot/experiments/builtin/*.toml")}
    assert {"office-alexnet.toml", "office-vgg.toml", "rgbd-shots.toml", "voc-sketch.toml"} <= grids
    assets = {"page.html.j2", "page.css", "page.js"}
    assert {"sohot/py.typed", "sohot/reporting/published.toml"} <= set(wheel)
    assert {f"sohot/reporting/pages/assets/{name}" for name in assets} <= set(wheel)


def test_everything_the_source_archive_names_exists() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert all((ROOT / name).exists() for name in project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])


def test_the_image_copies_what_exists_and_is_not_ignored() -> None:
    sources = [name for line in lines_of("Dockerfile", "COPY") for name in line.split()[:-1]]
    rules = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert sources
    assert "*" in rules
    assert {f"!{name}" for name in sources} == {rule for rule in rules if rule.startswith("!")}
    assert all((ROOT / name).exists() for name in sources)


def test_the_image_has_what_the_wheel_is_built_from() -> None:
    sources = {name for line in lines_of("Dockerfile", "COPY") for name in line.split()[:-1]}
    assert {"pyproject.toml", "src", PROJECT["readme"], *PROJECT["license-files"]} <= sources


def test_the_arguments_of_the_image_have_a_meaning() -> None:
    defaults = docker_defaults()
    stages = {line.split(" AS ")[1] for line in lines_of("Dockerfile", "FROM") if " AS " in line}
    assert lines_of("Dockerfile", "FROM")[-1] == "${DEVICE}"
    assert stages == {"cpu", "cuda"}
    assert defaults["DEVICE"] == "cpu"
    assert f"Programming Language :: Python :: {defaults['PYTHON']}" in PROJECT["classifiers"]
    assert set(defaults["EXTRAS"].split(",")) <= set(PROJECT["optional-dependencies"])


def test_the_image_installs_the_tested_set_and_runs_the_command_as_nobody_special() -> None:
    runs, text = lines_of("Dockerfile", "RUN"), (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert any("pip install --constraint /opt/sohot/constraints.txt" in line for line in runs)
    (entry,) = lines_of("Dockerfile", "ENTRYPOINT")
    assert re.findall(r'"(.+?)"', entry)[0] in PROJECT["scripts"]
    (user,) = lines_of("Dockerfile", "USER")
    assert any(f"useradd --create-home {user} " in line for line in runs)
    assert text.index("\nUSER ") > text.rindex("\nRUN ")


@pytest.mark.parametrize("file", ["README.md", "docs/install.md"])
def test_extras_that_are_advertised_exist(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    named = {name for extras in re.findall(r"\.\[([a-z,]+)\]", text) for name in extras.split(",")}
    assert named
    assert named <= set(PROJECT["optional-dependencies"])
