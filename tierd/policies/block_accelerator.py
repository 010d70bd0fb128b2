"""The policy of this name; its parts are in detect and decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from tierd.detect.block_accelerator import DETECTOR, Accelerator, accelerators, with_absorbed
from tierd.model import Facts, Finding, JobLoad
from tierd.policies.protocol import Amend


def amends(facts: Facts) -> Amend:
    """How accelerators change findings."""
    return partial(amended, accelerators(facts.disk_writes))


def amended(seen: Mapping[str, Accelerator], finding: Finding, loads: Mapping[str, JobLoad]) -> Finding:
    """The finding, as advice only if accelerators take the writes in."""
    return with_absorbed(finding, loads, seen) if seen else finding


POLICY = replace(DETECTOR, amends=amends)
