"""Locks: as many series as kinds of namespaces, and counters that outlive their source."""

from tests.exporter.collectors.families import SYSFS, shown


def namespace(name: str, **numbers: object) -> dict[str, str]:
    return {f"{SYSFS}/ldlm/namespaces/{name}/{key}": f"{value}\n" for key, value in numbers.items()}


def test_lock_counters_survive_a_target_that_moves_to_another_server(grow, exporter, samples) -> None:
    root = grow(namespace("filter-lustre-OST0000_UUID", lock_timeouts=5)
                | namespace("filter-lustre-OST0001_UUID", lock_timeouts=2))  # fmt: skip
    running = exporter(root)
    name = "lustre_ldlm_lock_timeouts_total"
    assert shown(samples, running.scrape(), name, "namespace") == {"ost": "7"}
    gone = root / f"{SYSFS}/ldlm/namespaces/filter-lustre-OST0000_UUID"
    (gone / "lock_timeouts").unlink()
    gone.rmdir()
    grow(namespace("filter-lustre-OST0001_UUID", lock_timeouts=3))
    assert shown(samples, running.scrape(), name, "namespace") == {"ost": "8"}
    grow(namespace("filter-lustre-OST0000_UUID", lock_timeouts=1))
    assert shown(samples, running.scrape(), name, "namespace") == {"ost": "9"}
