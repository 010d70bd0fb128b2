"""Who asks waits, but not for ever."""

from __future__ import annotations

PATIENCE_SECONDS = 20.0
"""So long a directory is looked through for somebody who waits for the answer."""
