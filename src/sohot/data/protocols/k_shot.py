"""Any numbers of images per class: for one's own data sets and questions."""

from ..datasets import DataSet
from .checks import check_count
from .drawing import Drawing
from .split import Split


def k_shot_split(
    dataset: DataSet,
    shift: str | None = None,
    split: int = 1,
    *,
    target_shots: int = 3,
    source_shots: int | None = None,
    validation_shots: int = 0,
    leave_out: bool = False,
) -> Split:
    """Draw a split with any numbers; all target images that neither train nor validate test.

    Args:
        dataset: The data set.
        shift: From which domain to which; None where there is one shift.
        split: The number of the split, from 0: any.
        target_shots: Target images per class that train; 0 for none.
        source_shots: Source images per class that train; None for all.
        validation_shots: Target images per class that validate; 0 for no such side.
        leave_out: Leave out classes that only one domain has.
    """
    check_count(split, "split", 0)
    check_count(target_shots, "target_shots", 0)
    check_count(validation_shots, "validation_shots", 0)
    if source_shots is not None:
        check_count(source_shots, "source_shots", 1)
    drawing = Drawing("k-shot", dataset, shift, split, leave_out)
    drawing.draw_source(source_shots)
    later = "validation" if validation_shots else "target_test"
    rest = drawing.draw_target("target_train", target_shots, range(len(drawing.target.images)), later)
    if validation_shots:
        rest = drawing.draw_target("validation", validation_shots, rest, "target_test")
    drawing.fill_rest("target_test", rest)
    return drawing.finish(
        {"source_shots": source_shots, "target_shots": target_shots, "validation_shots": validation_shots}
    )
