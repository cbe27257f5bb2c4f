"""The site: `make docs` builds it from the repository, without a connection, into build/docs.

The source folder is the whole repository, so that a link between two files is the same on the site and on GitHub.
"""

import logging
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx_gallery.sorting import ExplicitOrder

from sohot import __version__

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_site"))
logging.getLogger("traitlets").setLevel(logging.WARNING)  # otherwise notebooks report each step

project = "sohot"
author = "The sohot developers"
project_copyright = author
release = version = __version__

extensions = [
    "formulas",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/gallery/**.rst",
    "notebooks/*.ipynb",
    "benchmarks/results/*.md",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
]
exclude_patterns = [".*", "build", "dist", "demo", "runs", "src", "tests", "studies", "**.ipynb_checkpoints"]
nitpicky = True

# Pages are Markdown that GitHub shows as well.
myst_enable_extensions = ["colon_fence", "dollarmath", "html_image"]
myst_heading_anchors = 4
suppress_warnings = ["myst.header"]  # a page may go from a heading to one two levels down
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

# Docstrings mark code by single backticks; a name that the reference describes becomes a link.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_default_options = {"members": True}
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
napoleon_custom_sections = [("Options", "params_style")]
nitpick_ignore_regex = [("py:.*", "(?s).*")]  # types of other packages, and our own that are not public, have no page

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": "examples/gallery",
    "gallery_dirs": "docs/gallery",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "capture_repr": (),
    "min_reported_time": 600,
    "copyfile_regex": r".*\.rst",
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
    "within_subsection_order": ExplicitOrder(
        [
            "own_folders.py",
            "unlabelled_pool.py",
            "label_next.py",
            "pytorch_loop.py",
            "scikit_learn_and_skada.py",
            "grid_on_ray.py",
        ]
    ),
}

copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_title = "sohot"
html_static_path = ["_site/static"]
html_extra_path = ["_site/index.html"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False


def _public_name(app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Node) -> nodes.Node | None:
    """Link a name to where the reference describes it: `sohot.losses.alignment.ClassName` to that of `sohot.losses`."""
    package, _, name = str(node.get("reftarget", "")).rpartition(".")
    if node.get("refdomain") != "py" or not package.startswith("sohot"):
        return None
    domain = env.get_domain("py")
    homes = [full for full in getattr(domain, "objects", {}) if full.endswith(f".{name}") and full.count(".") == 2]
    best = max(homes, key=lambda home: package.startswith(home.rpartition(".")[0]), default=None)
    if best is None:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", best, node, content)


def _leave_out(app: Sphinx, kind: str, name: str, thing: object, skip: bool, options: object) -> bool | None:  # noqa: ARG001
    """Leave out methods that scikit-learn adds to every estimator."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def _whole_sentence(app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]) -> None:  # noqa: ARG001
    """Keep the sentence about a property whole: what stands before a colon would be taken for a type."""
    if kind in ("property", "attribute") and lines:
        lines[0] = lines[0].replace(": ", " – ", 1)


def setup(app: Sphinx) -> None:
    """Connect what the reference needs."""
    app.connect("autodoc-process-docstring", _whole_sentence, priority=400)  # before napoleon reads it
    app.connect("missing-reference", _public_name)
    app.connect("autodoc-skip-member", _leave_out)
