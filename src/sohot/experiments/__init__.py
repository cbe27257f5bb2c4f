"""Experiments: the demo, its task and its pictures."""

from .demo import METHODS, DemoProgress, describe, run_demo

__all__ = ["METHODS", "DemoProgress", "describe", "run_demo"]
