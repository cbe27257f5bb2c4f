"""Images on disk and in memory: folders, lists, choice of labelled images, batches."""

from typing import TYPE_CHECKING

from .._lazy import lazy_parts

if TYPE_CHECKING:
    from .augment import AugmentedImages as AugmentedImages
    from .batches import BalancedBatches as BalancedBatches
    from .check import CheckReport as CheckReport
    from .check import check_dataset as check_dataset
    from .crops import to_tensor as to_tensor
    from .datasets import DataSet as DataSet
    from .datasets import dataset_names as dataset_names
    from .datasets import open_dataset as open_dataset
    from .datasets import read_class_table as read_class_table
    from .decode import UnreadableImage as UnreadableImage
    from .decode import read_image as read_image
    from .digit_folders import DigitFolders as DigitFolders
    from .digit_folders import write_digit_folders as write_digit_folders
    from .digits import font_digits as font_digits
    from .digits import handwritten_digits as handwritten_digits
    from .folders import ClassMismatchError as ClassMismatchError
    from .folders import FolderScan as FolderScan
    from .folders import LeftOut as LeftOut
    from .folders import common_classes as common_classes
    from .folders import scan_folder as scan_folder
    from .image_batches import ImageInputs as ImageInputs
    from .image_batches import iter_batches as iter_batches
    from .image_batches import load_batch as load_batch
    from .image_places import scan_images as scan_images
    from .input_spec import InputSpec as InputSpec
    from .labelled import LabelledImages as LabelledImages
    from .shots import short_classes as short_classes
    from .shots import take_shots as take_shots
else:
    __getattr__, __dir__, __all__ = lazy_parts(__name__)
