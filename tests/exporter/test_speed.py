"""Ratios of processor time within one run, with tolerance for a busy machine. ``make bench`` prints the ratios."""

from __future__ import annotations

import tempfile
from pathlib import Path

from bench.against_prometheus_client import compare
from bench.exporter import memory_folder
from bench.trees import ClientTree, ServerTree
from lustre.formats.compiled import AVAILABLE


def test_a_sample_costs_a_fraction_of_what_it_costs_through_prometheus_client() -> None:
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder:
        client = compare(ClientTree(Path(folder, "client"), 200), osc_per_target=True)
        server = compare(ServerTree(Path(folder, "server"), 1, 1500))
    assert client.samples > 25000
    assert server.samples > 20000
    assert client.ratio("few") > 8
    assert server.ratio("few") > 9
    assert min(client.ratio("all"), server.ratio("all")) > (4 if AVAILABLE else 1.5)
