"""Files in the folder of a run."""

CONFIG = "config.toml"
"""The options, resolved."""

DESCRIPTION = "run.json"
"""What the run is: settings, network, images, versions."""
