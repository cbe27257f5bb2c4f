"""Tables of plain strings written as text, Markdown and LaTeX, each with its own escaping, and as files."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..._files import to_json, write_atomically


@dataclass(frozen=True)
class TextTable:
    """One table of plain strings.

    Attributes:
        title: The line above it.
        header: The names of the columns.
        rows: The cells; each row is as long as the header.
        left: How many leading columns hold words; the others hold numbers and are right-aligned.
        groups: Indices of the rows above which a line is drawn.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1
    groups: Sequence[int] = ()


@dataclass(frozen=True)
class Document:
    """Tables under one title, with notes below."""

    title: str
    blocks: Sequence[TextTable]
    notes: Sequence[str] = field(default=())


def to_text(document: Document) -> str:
    """Write for a terminal, without a newline at the end.

    >>> animals = TextTable("legs", ["name", "count"], [["cat", "4"], ["owl", "2"]])
    >>> print(to_text(Document("Animals", [animals], ["Born."])))
    Animals
    <BLANKLINE>
    legs
    name  count
    -----------
    cat       4
    owl       2
    <BLANKLINE>
    Born.
    """
    parts = [_one_line(document.title), *map(_text_block, document.blocks)]
    if document.notes:
        parts.append("\n".join(map(_one_line, document.notes)))
    return "\n\n".join(parts)


def to_markdown(document: Document) -> str:
    r"""Write Markdown, without a newline at the end.

    >>> print(to_markdown(Document("A", [TextTable("", ["a|b", "n"], [["<i>", "1"]])])))
    ## A
    <BLANKLINE>
    | a\|b | n |
    | --- | ---: |
    | &lt;i&gt; | 1 |
    """
    parts = [f"## {escape_markdown(document.title)}"]
    for block in document.blocks:
        lines = [] if not block.title else [f"**{escape_markdown(block.title)}**", ""]
        rule = ["---" if place < block.left else "---:" for place in range(len(block.header))]
        rows = [[escape_markdown(cell) for cell in row] for row in (block.header, *block.rows)]
        lines += [f"| {' | '.join(row)} |" for row in (rows[0], rule, *rows[1:])]
        parts.append("\n".join(lines))
    if document.notes:
        parts.append("\n".join(f"- {escape_markdown(note)}" for note in document.notes))
    return "\n\n".join(parts)


def to_latex(document: Document) -> str:
    """Write LaTeX for the package booktabs: one `table` for each block, notes below the last; no newline at the end."""
    tables = []
    for place, block in enumerate(document.blocks):
        caption = ": ".join(part for part in (document.title, block.title) if part)
        body = ["\\midrule\n" * (number in block.groups) + _latex_row(row) for number, row in enumerate(block.rows)]
        last = place == len(document.blocks) - 1
        notes = ["\\par\\smallskip\\footnotesize", *(f"{escape_latex(note)}\\par" for note in document.notes)]
        lines = [
            "\\begin{table}",
            "\\centering",
            f"\\caption{{{escape_latex(caption)}}}",
            f"\\begin{{tabular}}{{{'l' * block.left}{'r' * (len(block.header) - block.left)}}}",
            "\\toprule",
            _latex_row(block.header),
            "\\midrule",
            *body,
            "\\bottomrule",
            "\\end{tabular}",
            *(notes if last and document.notes else []),
            "\\end{table}",
        ]
        tables.append("\n".join(lines))
    return "\n\n".join(["% needs \\usepackage{booktabs}", *tables])


def escape_markdown(text: str) -> str:
    r"""Escape a text for Markdown, including cells of tables.

    >>> escape_markdown("a|b & <b>c</b> *d*")
    'a\\|b &amp; &lt;b&gt;c&lt;/b&gt; \\*d\\*'
    """
    text = _one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|`*_\[\]~$])", r"\\\1", text)


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "ζ": r"$\zeta$",
    "→": r"$\rightarrow$",
    "–": "--",
    "…": r"\ldots{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def escape_latex(text: str) -> str:
    r"""Escape a text for LaTeX.

    >>> escape_latex("50 % & a_b ± 1")
    '50 \\% \\& a\\_b $\\pm$ 1'
    """
    return "".join(_LATEX.get(sign, sign) for sign in _one_line(text))


def _latex_row(cells: Sequence[str]) -> str:
    return f"{' & '.join(map(escape_latex, cells))} \\\\"


def _text_block(block: TextTable) -> str:
    rows = [[_one_line(cell) for cell in row] for row in (block.header, *block.rows)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    lines = [_one_line(block.title)] if block.title else []
    for number, row in enumerate(rows):
        if number == 1 or number - 1 in block.groups:
            lines.append(rule)
        cells = [_pad(cell, widths[place], place < block.left) for place, cell in enumerate(row)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _pad(cell: str, width: int, left: bool) -> str:
    space = " " * (width - _width(cell))
    return cell + space if left else space + cell


def _width(text: str) -> int:
    """Count the columns that a text takes in a terminal; some characters take two."""
    from rich.cells import cell_len

    return cell_len(text)


def _one_line(text: str) -> str:
    """Put a text on one line and drop control characters."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())


Formatter = Callable[[Document], str]
FORMATS: dict[str, Formatter] = {"txt": to_text, "md": to_markdown, "tex": to_latex}
"""By the suffix of the file."""
TABLE = "table"
"""The name of the files."""


def write_documents(document: Document, data: Any, csv_text: str, out: Path, name: str = TABLE) -> list[Path]:
    """Write one table in all formats, each file atomically."""
    out.mkdir(parents=True, exist_ok=True)
    contents = {suffix: f"{form(document)}\n".encode() for suffix, form in FORMATS.items()}
    contents |= {"csv": csv_text.encode(), "json": to_json(data)}
    for suffix, content in contents.items():
        write_atomically(out / f"{name}.{suffix}", content)
    return [out / f"{name}.{suffix}" for suffix in contents]
