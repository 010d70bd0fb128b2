"""The slim profile: few series, with the names, labels and values of the full one."""

import pytest
from prometheus_client import CollectorRegistry

from exporter import clock, exposition
from exporter.__main__ import main
from exporter.collector import Settings
from exporter.collectors.slim import IN_FLIGHT, SLIM_COLLECTORS
from exporter.scrape import Scraper
from lustre.parameters import Roots, Tree
from tests.exporter.collectors.families import shown

TREES = ["2.17.57/tree-load-1", "2.17.57/tree-idle"]


def slim(root) -> bytes:
    settings = Settings(frozenset(collector.name for collector in SLIM_COLLECTORS))
    scraper = Scraper(Tree(Roots.of(root / "proc", root / "sys")), SLIM_COLLECTORS, settings, clock.monotonic)
    text = b"".join(exposition.render(scraper.run(), CollectorRegistry(), openmetrics=False))
    assert all(outcome.success and not outcome.reads.skipped for outcome in scraper.outcomes.values())
    return text


@pytest.mark.parametrize("tree", TREES)
def test_every_sample_is_that_of_the_full_profile(capture, exporter, samples, tree) -> None:
    root = capture(tree)
    full, few = samples(exporter(root).scrape()), samples(slim(root))
    of_full = {key: value for key, value in few.items() if key[0] != IN_FLIGHT.name}
    assert of_full == {key: full.get(key) for key in of_full}
    names = {name for name, _ in few}
    if tree != TREES[0]:
        return  # nothing was read or written
    assert names >= {
        "lustre_llite_read_bytes_total", "lustre_llite_write_bytes_total", "lustre_llite_operations_total",
        "lustre_llite_operation_seconds_total", "lustre_osc_requests_total", "lustre_osc_request_wait_seconds_total",
        "lustre_osc_requests_in_flight", "lustre_osc_imports", "lustre_mdc_requests_total",
        "lustre_llite_read_ahead_hits_total", "lustre_llite_read_ahead_misses_total",
        "lustre_llite_read_ahead_max_bytes", "lustre_llite_statahead_wrong_total", "lustre_version_info",
    }  # fmt: skip
    created = {("fs", "lustre"), ("mount", ""), ("operation", "mknod")}  # what open creates
    assert few["lustre_llite_operations_total", frozenset(created)] == "2066"


def test_connections_that_are_not_full_are_shown(grow, samples) -> None:
    osc = "sys/kernel/debug/lustre/osc/lustre-OST000{}-osc-ff1100011d6c9800/import"
    files = {osc.format(number): f"import:\n    state: {state}\n    rpcs:\n       inflight: {number}\n"
             for number, state in enumerate(("FULL", "DISCONN", "FULL", "IDLE"))}  # fmt: skip
    text = slim(grow({**files, "proc/mounts": "m@tcp:/lustre /mnt lustre rw 0 0\n"}))
    assert shown(samples, text, "lustre_osc_imports", "state") == {"FULL": "2", "DISCONN": "1", "IDLE": "1"}
    assert [*shown(samples, text, IN_FLIGHT.name, "state").values()] == ["6"]


def test_a_client_has_at_most_a_hundred_series(capture, capsys) -> None:
    root = capture(TREES[0])
    assert main(["--profile=slim", "--once", f"--path.procfs={root}/proc", f"--path.sysfs={root}/sys"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("#")]
    assert 40 < len(lines) <= 100
