"""What becomes of the settings where a domain is missing."""

import warnings

from ..stacked import HeadSettings
from .domains import TrainingRows
from .fitting import one_domain_settings


def settings_for(rows: TrainingRows, settings: HeadSettings, *, stacklevel: int = 3) -> HeadSettings:
    """Fit the settings to the rows there are, and warn of what cannot be done.

    Args:
        rows: The training rows.
        settings: What was asked for.
        stacklevel: Whose line the warning shows.

    Returns:
        The settings; those of a plain classifier where the rows are all of one domain.

    Raises:
        ValueError: The method learns from a domain that has no labelled row.
    """
    method = settings.resolved_method()
    if rows.unlabelled and len(rows.target):
        warnings.warn(
            f"{rows.unlabelled} target rows have no label and are left out: the method learns from labelled rows alone",
            stacklevel=stacklevel,
        )
    if not rows.one_domain:
        return settings
    if rows.has_target and len(rows.source):
        if not method.uses_source:
            raise ValueError(f"method={method.name!r} learns from the target alone, and no target row has a label")
        if method.uses_target:
            warnings.warn(
                "no target row has a label, so nothing can be aligned: trained on the source alone",
                stacklevel=stacklevel,
            )
    elif rows.has_target:
        if not method.uses_target:
            raise ValueError(f"method={method.name!r} learns from the source alone, and there is no source row")
        if method.uses_source:
            warnings.warn(
                "there is no source row, so nothing can be aligned: trained on the target alone", stacklevel=stacklevel
            )
    return one_domain_settings(settings)
