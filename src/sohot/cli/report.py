"""`sohot report`: a folder of results as one HTML page."""

from pathlib import Path

from ..experiments.report import write_report
from ..experiments.report.writing import kind_of
from .output import print_json, print_text, results_only
from .watching import bar


def report_on(folder: Path, out: Path | None, *, images: int, figures: Path | None, quiet: bool, json: bool) -> None:
    """Write the report of a folder and say where it is."""
    with results_only(), bar(quiet) as progress:
        file = write_report(folder, out, images=images, figures=figures, progress=progress)
    size = file.stat().st_size
    if json:
        print_json({"path": str(folder), "kind": kind_of(folder), "report": str(file), "bytes": size})
        return
    print_text(f"{file}: report of the {kind_of(folder)}, {size / 1e6:.1f} MB, to be opened in a browser")
