"""Tables of an experiment: as text, Markdown, LaTeX, CSV and JSON."""

from .formats import Block, Document, to_latex, to_markdown, to_text
from .layout import lay_out
from .summary import table_json
from .writing import csv_table, latex_table, markdown_table, text_table, write_tables

__all__ = [
    "Block",
    "Document",
    "csv_table",
    "latex_table",
    "lay_out",
    "markdown_table",
    "table_json",
    "text_table",
    "to_latex",
    "to_markdown",
    "to_text",
    "write_tables",
]
