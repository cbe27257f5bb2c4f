"""The data sets of this field, read from their official releases."""

from .class_table import ClassTable, read_class_table
from .dataset import DataSet
from .registry import dataset_names, open_dataset

__all__ = ["ClassTable", "DataSet", "dataset_names", "open_dataset", "read_class_table"]
