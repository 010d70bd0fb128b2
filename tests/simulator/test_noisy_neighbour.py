"""The published noisy-neighbour experiment: nothing of its result is written into the scenario or the model."""

from __future__ import annotations

import pytest

from simulator import scenario

STREAM = "ior.1002"


@pytest.fixture(scope="module")
def measured() -> dict[str, float]:
    found = {}
    variants = scenario.library("noisy-neighbour-paper").variants()
    for name in ("alone", "contended", "flash_covers", "flash_too_small", "contended_1m"):
        cluster = variants[name].build()
        cluster.advance(3.0)
        found[name] = cluster.log.mean(STREAM, 1, 3)
    return found


def test_the_group_streams_at_what_its_disks_give(measured: dict[str, float]) -> None:
    assert measured["alone"] == pytest.approx(6000, rel=0.05)  # "each SSU can deliver more than 12 GB/s", two OSTs each


def test_small_files_on_the_same_disks_cost_the_stream_a_quarter(measured: dict[str, float]) -> None:
    assert 0.70 <= measured["contended"] / measured["alone"] <= 0.82


def test_a_flash_component_that_holds_the_file_gives_it_back(measured: dict[str, float]) -> None:
    assert measured["flash_covers"] >= 0.97 * measured["alone"]


def test_a_component_too_small_is_worse_than_none(measured: dict[str, float]) -> None:
    assert measured["flash_too_small"] < 0.95 * measured["contended"]


def test_small_files_of_a_quarter_stripe_hurt_more_than_their_bytes(measured: dict[str, float]) -> None:
    assert measured["contended_1m"] < measured["contended"]


def test_the_recorded_test_bed_has_the_same_variants() -> None:
    names = set(scenario.library("noisy-neighbour").variants())
    assert {"alone", "contended", "flash_covers", "flash_too_small"} <= names
