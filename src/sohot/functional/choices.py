"""What the functions on tensors offer by name, without torch: settings and the command line only need the names."""

ESTIMATORS = ("plugin", "unbiased")
