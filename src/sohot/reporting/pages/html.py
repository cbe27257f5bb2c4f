"""A report as one HTML file that needs nothing but itself."""

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from .blocks import Page

_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)
_BEGIN = 'document.documentElement.classList.add("scripted");'  # what stands in for scripts is hidden at once


def render(page: Page) -> str:
    """Write a report as HTML.

    All text is escaped. Scripts run only if their hash stands in the page's policy, and the policy forbids the network,
    so that even a name that slipped through could neither run nor load anything.

    >>> "&lt;b&gt;" in render(Page("<b>", "run", ["All is well."], [], []))
    True
    """
    plots = page.plots()
    figures = [plot.figure for plot in plots]
    scripts = {
        "begin": Markup(_BEGIN),
        "script": Markup(_asset("page.js")),
        "plotly": Markup(_plotly()) if plots else "",
    }
    template = _environment().from_string(_asset("page.html.j2"))
    return template.render(
        page=page,
        policy=_POLICY.format(scripts=" ".join(_hash(text) for text in scripts.values() if text)),
        style=Markup(_asset("page.css")),
        figures=Markup(script_json(figures)),
        numbers=_Numbers(plots),
        **scripts,
    )


def script_json(value: Any) -> str:
    r"""Write JSON that cannot end, or comment out, the script element it stands in.

    >>> script_json(["</script><!--"])
    '["\\u003c/script>\\u003c!--"]'
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


class _Numbers:
    """Numbers plots by their place on the page, also two that are equal."""

    def __init__(self, plots: list[Any]) -> None:
        self._places = {id(plot): place for place, plot in enumerate(plots)}

    def __getitem__(self, plot: Any) -> int:
        return self._places[id(plot)]


@cache
def _environment() -> Environment:
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


@cache
def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """Give plotly.js, from the package that carries it."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    return str(get_plotlyjs())


@cache
def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
