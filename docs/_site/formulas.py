"""Formulas as pictures inside the page (SVG): they look alike in every browser, without a script or a connection."""

import re
from html import escape
from typing import Any

import ziamath
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

PIXELS = 17
"""Size of letters: those of the text around have 16, and look larger."""

_logger = logging.getLogger(__name__)


def _drawn(node: nodes.math | nodes.math_block, *, inline: bool) -> str:
    """Draw a formula; its source is what a screen reader says."""
    text = node.astext()
    try:
        formula = ziamath.Latex(text, size=PIXELS, inline=inline, color="currentColor")
        if unknown := re.search(r"\\[A-Za-z]+", formula.mathmlstr()):
            raise ValueError(f"{unknown[0]} is unknown")
    except Exception as error:  # of any kind: what cannot be drawn must not stop the build without its place
        _logger.warning("the formula %s cannot be drawn: %r", text, error, location=node)
        return ""
    tag, shift = ("span", f' style="vertical-align: {formula.getyofst():.1f}px"') if inline else ("div", "")
    return f'<{tag} class="formula" role="img" aria-label="{escape(text)}"{shift}>{formula.svg()}</{tag}>'


def _inline(translator: HTML5Translator, node: nodes.math) -> None:
    translator.body.append(_drawn(node, inline=True))
    raise nodes.SkipNode


def _block(translator: HTML5Translator, node: nodes.math_block) -> None:
    translator.body.append(_drawn(node, inline=False))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer and make it the one in use."""
    ziamath.config.svg2 = False  # every formula holds its own letters, so that no two have the same ids
    app.add_html_math_renderer("svg", inline_renderers=(_inline, None), block_renderers=(_block, None))
    app.config.html_math_renderer = "svg"  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
