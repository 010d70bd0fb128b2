"""Releases of Lustre whose parameter files the simulator can lay out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Release:
    """One release."""

    version: str


RELEASES: Mapping[str, Release] = {
    "2.12": Release("2.12.9"),
    "2.15": Release("2.15.8"),
    "2.17": Release("2.17.57"),
}
