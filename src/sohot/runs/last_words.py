"""What a process that `launching` has started leaves to the one that started it: how it ended."""

import os
from pathlib import Path

from .._files import write_json
from ..training.errors import RankLost

ENDING = "SOHOT_ENDING"
"""Environment of such a process: the file in which it says how it ended."""


def record_ending(code: int, sentence: str, error: BaseException) -> bool:
    """Leave the end of this process to the one that started it; False if that was somebody else."""
    file = os.environ.get(ENDING)
    if file is None:
        return False
    from ..training.ranks import lost_connection  # not before: every command that fails asks here

    lost = isinstance(error, RankLost) or lost_connection(error) or lost_connection(error.__cause__)
    write_json(Path(file), {"code": code, "sentence": sentence, "lost": lost})
    return True
