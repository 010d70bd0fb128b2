"""Locks: as many series as kinds of namespaces, and counters that outlive their source."""

from __future__ import annotations

from tests.exporter.collectors.families import MOUNT, SYSFS, shown


def namespace(name: str, **numbers: object) -> dict[str, str]:
    return {f"{SYSFS}/ldlm/namespaces/{name}/{key}": f"{value}\n" for key, value in numbers.items()}


def test_locks_of_many_targets_are_as_many_series_as_of_one(grow, exporter, samples) -> None:
    one = grow(namespace(f"lustre-OST0000-osc-{MOUNT}", lock_count=5, lock_unused_count=3)
               | {f"{SYSFS}/osc/lustre-OST0000-osc-{MOUNT}/active": "1\n"})  # fmt: skip
    few = len(samples(exporter(one).scrape("ldlm")))
    many = {}
    for i in range(1, 50):
        device = f"lustre-OST{i:04x}-osc-{MOUNT}"
        many |= namespace(device, lock_count=5, lock_unused_count=3) | {f"{SYSFS}/osc/{device}/active": "1\n"}
    text = exporter(grow(many)).scrape("ldlm")
    assert len(samples(text)) == few
    assert shown(samples, text, "lustre_ldlm_locks", "namespace") == {"osc": "250"}


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
