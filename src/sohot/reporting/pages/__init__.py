"""Reports: a run, a demo or an experiment as one HTML page."""

from .writing import write_report

__all__ = ["write_report"]
