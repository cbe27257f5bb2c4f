"""What the alignment loss offers by name, without torch: settings and the command line only need the names."""

SCOPES = ("class", "marginal")
CLASS_WEIGHTS = ("learned", "closed-form")
FEATURE_SCALES = ("none", "initial", "unit")
