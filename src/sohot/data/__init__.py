"""Images on disk and in memory: folders, choice of labelled ones, batches."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .augment import AugmentedImages
    from .batches import BalancedBatches
    from .check import CheckReport, check_dataset
    from .crops import to_tensor
    from .datasets import DataSet, dataset_names, open_dataset, read_class_table
    from .decode import UnreadableImage, read_image
    from .digits import font_digits, handwritten_digits
    from .folders import ClassMismatchError, FolderScan, LeftOut, common_classes, scan_folder
    from .image_batches import ImageInputs, iter_batches, load_batch
    from .input_spec import InputSpec
    from .labelled import LabelledImages
    from .shots import short_classes, take_shots
else:
    __getattr__, __dir__ = lazy_parts(
        __name__,
        {
            "augment": ("AugmentedImages",),
            "batches": ("BalancedBatches",),
            "check": ("CheckReport", "check_dataset"),
            "datasets": ("DataSet", "dataset_names", "open_dataset", "read_class_table"),
            "decode": ("UnreadableImage", "read_image"),
            "digits": ("font_digits", "handwritten_digits"),
            "folders": ("ClassMismatchError", "FolderScan", "LeftOut", "common_classes", "scan_folder"),
            "input_spec": ("InputSpec",),
            "labelled": ("LabelledImages",),
            "image_batches": ("ImageInputs", "iter_batches", "load_batch"),
            "shots": ("short_classes", "take_shots"),
            "crops": ("to_tensor",),
        },
    )

__all__ = [
    "AugmentedImages",
    "BalancedBatches",
    "CheckReport",
    "ClassMismatchError",
    "DataSet",
    "FolderScan",
    "ImageInputs",
    "InputSpec",
    "LabelledImages",
    "LeftOut",
    "UnreadableImage",
    "check_dataset",
    "common_classes",
    "dataset_names",
    "font_digits",
    "handwritten_digits",
    "iter_batches",
    "load_batch",
    "open_dataset",
    "read_class_table",
    "read_image",
    "scan_folder",
    "short_classes",
    "take_shots",
    "to_tensor",
]
