"""What networks and streams offer by name, without torch: settings and the command line only need the names."""

TAPS = ("before-relu", "after-relu", "output")
TRAINS = ("paper", "all", "head")
DROPOUTS = ("classifier", "everywhere", "none")
STREAMS = ("shared", "separate")
HEADS = ("shared", "coupled")
BATCH_NORMS = ("auto", "fixed", "moving")
