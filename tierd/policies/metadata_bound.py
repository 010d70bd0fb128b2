"""The policy of this name; its parts are in detect and decide."""

from __future__ import annotations

from tierd.detect.metadata_bound import DETECTOR

POLICY = DETECTOR
