"""The simulator against what was published and what was recorded; ``python -m bench.calibration`` writes the report."""
