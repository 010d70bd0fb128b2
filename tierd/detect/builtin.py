"""The built-in detectors. A new detector needs one module and one line here.

Detectors of slowdowns run in every cycle. The other detectors run each time a window of half a minute is complete.
"""

from __future__ import annotations

from tierd.detect import (
    block_accelerator,
    cold_on_flash,
    flash_pressure,
    hot_small_files,
    imbalance,
    metadata_bound,
    metadata_imbalance,
    metadata_storm,
    omni_path,
    opened_for_writing,
    outgrown_component,
    read_ahead,
    rpc_size,
    rpcs_in_flight,
    shared_file_contention,
    small_random_io,
    statahead,
    storage_rebuild,
    striping,
)
from tierd.detect.plugin import AnyDetector

BUILT_IN: tuple[AnyDetector, ...] = (
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
    omni_path.DETECTOR,
    metadata_storm.DETECTOR,
    metadata_imbalance.DETECTOR,
    metadata_bound.DETECTOR,
    striping.DETECTOR,
    storage_rebuild.DETECTOR,
    block_accelerator.DETECTOR,
    opened_for_writing.DETECTOR,
)
