"""Names of the choices in losses, networks and streams, importable without torch for the options."""

SCOPES = ("class", "marginal")
CLASS_WEIGHTS = ("learned", "closed-form")
FEATURE_SCALES = ("none", "initial", "unit")

TAPS = ("before-relu", "after-relu", "output")
TRAINS = ("paper", "all", "head")
DROPOUTS = ("classifier", "everywhere", "none")
STREAMS = ("shared", "separate")
HEADS = ("shared", "coupled")
TWO_PASSES = "both"
"""Batch normalisation by two sets of statistics: each image passes the network twice."""
BATCH_NORMS = ("auto", "fixed", "moving", TWO_PASSES)
