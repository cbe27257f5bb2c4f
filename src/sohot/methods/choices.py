"""What the alignment loss offers by name, without torch: settings and the command line only need the names."""

SCOPES = ("class", "marginal")
CLASS_WEIGHTS = ("learned", "closed-form")
FEATURE_SCALES = ("none", "initial", "unit")

RIVAL_WEIGHTS = {"variance": 0.1, "ccsa": 1 / 3, "dsne": 0.1, "dage": 1.0, "supcon": 1.0}
"""Weights of the losses of `sohot.losses`, those of their papers where these tell one."""
