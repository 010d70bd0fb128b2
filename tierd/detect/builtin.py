"""The built-in detectors, in one tuple: a new one is one module and its line here.

``noisy-neighbour`` and ``shared-bandwidth`` run in each cycle and are called by ``tierd.engine``.
"""

from __future__ import annotations

from typing import Any

from tierd.detect import (
    cold_on_flash,
    flash_pressure,
    hot_small_files,
    imbalance,
    metadata_storm,
    outgrown_component,
    read_ahead,
    rpc_size,
    rpcs_in_flight,
    shared_file_contention,
    small_random_io,
    statahead,
    striping,
)
from tierd.detect.plugin import Detector

BUILT_IN: tuple[Detector[Any], ...] = (
    small_random_io.DETECTOR,
    shared_file_contention.DETECTOR,
    outgrown_component.DETECTOR,
    hot_small_files.DETECTOR,
    cold_on_flash.DETECTOR,
    flash_pressure.DETECTOR,
    imbalance.DETECTOR,
    read_ahead.DETECTOR,
    statahead.DETECTOR,
    rpcs_in_flight.DETECTOR,
    rpc_size.DETECTOR,
    metadata_storm.DETECTOR,
    striping.DETECTOR,
)
