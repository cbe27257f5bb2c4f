"""What losses, networks and streams offer by name, without torch: options only need the names."""

SCOPES = ("class", "marginal")
CLASS_WEIGHTS = ("learned", "closed-form")
FEATURE_SCALES = ("none", "initial", "unit")

TAPS = ("before-relu", "after-relu", "output")
TRAINS = ("paper", "all", "head")
DROPOUTS = ("classifier", "everywhere", "none")
STREAMS = ("shared", "separate")
HEADS = ("shared", "coupled")
BATCH_NORMS = ("auto", "fixed", "moving")
