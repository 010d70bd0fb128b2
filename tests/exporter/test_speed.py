"""Ratios of processor time within one run, with room for a busy machine; ``make bench`` says what they are."""

from __future__ import annotations

from pathlib import Path

from bench.against_prometheus_client import compare
from bench.trees import Client, Server


def test_a_sample_costs_a_fraction_of_what_it_costs_through_prometheus_client(tmp_path: Path) -> None:
    client = compare(Client(tmp_path / "client", 60), osc_per_target=True)
    server = compare(Server(tmp_path / "server", 1, 1000))
    assert client.samples > 7000
    assert server.samples > 15000
    assert client.ratio("few") > 6
    assert server.ratio("few") > 9
    assert min(client.ratio("all"), server.ratio("all")) > 3
