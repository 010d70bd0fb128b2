"""Other targets as metadata targets see them."""

from __future__ import annotations

from tests.exporter.collectors.families import DEBUG, SYSFS, shown


def osp(target: str, mdt: str, creates: int, **numbers: object) -> dict[str, str]:
    name = f"lustre-{target}-osc-{mdt}"
    known = {"active": 1, "prealloc_status": 0, "sync_changes": 2, "prealloc_next_id": 5, "prealloc_last_id": 9,
             "prealloc_next_seq": "0x1", "prealloc_last_seq": "0x1"} | numbers  # fmt: skip
    stats = f"snapshot_time 9.5 secs.nsecs\nost_create {creates} samples [usecs] 1 1 {creates} 9\n"
    return {f"{SYSFS}/osp/{name}/{key}": f"{value}\n" for key, value in known.items()} | {
        f"{DEBUG}/osp/{name}/stats": stats
    }


def test_a_metadata_target_of_many_object_targets_shows_as_much_as_of_one(grow, exporter, samples) -> None:
    few = len(samples(exporter(grow(osp("OST0000", "MDT0000", 1))).scrape("osp")))
    many: dict[str, str] = {}
    for i in range(1, 60):
        many |= osp(f"OST{i:04x}", "MDT0000", 1, prealloc_last_id=8 + i)
    root = grow(many)
    text = exporter(root).scrape("osp")
    assert len(samples(text)) == few
    assert shown(samples, text, "lustre_osp_sync_changes", "mdt", "pool") == {("MDT0000", ""): "120"}
    assert shown(samples, text, "lustre_osp_precreated_objects", "mdt") == {"MDT0000": "5"}
    assert len(samples(exporter(root, osp_per_target=True).scrape("osp"))) > 60 * few


def test_requests_to_targets_survive_one_that_starts_anew_and_trouble_is_named_while_it_lasts(
    grow, exporter, samples
) -> None:
    running = exporter(grow(osp("OST0000", "MDT0000", 10) | osp("OST0001", "MDT0000", 5)))
    name, labels = "lustre_osp_operations_total", ("kind", "operation")
    text = running.scrape("osp")
    assert shown(samples, text, name, *labels) == {("OST", "ost_create"): "15"}
    assert b"lustre_osp_active" not in text
    grow(osp("OST0000", "MDT0000", 11) | osp("OST0001", "MDT0000", 2, active=0, prealloc_status=-30))
    text = running.scrape("osp")
    assert shown(samples, text, name, *labels) == {("OST", "ost_create"): "18"}
    assert shown(samples, text, "lustre_osp_active", "target", "mdt") == {("OST0001", "MDT0000"): "0"}
    assert shown(samples, text, "lustre_osp_precreate_error", "target") == {"OST0001": "30"}
    grow(osp("OST0001", "MDT0000", 2))
    assert b"lustre_osp_precreate_error" not in running.scrape("osp")


def test_object_ids_of_two_sequences_are_not_subtracted(grow, exporter) -> None:
    ids = {"next_id": "201", "last_id": "33", "next_seq": "0x280000401", "last_seq": "0x280000402", "status": "-28"}
    root = grow({f"{SYSFS}/osp/lustre-OST0000-osc-MDT0000/prealloc_{key}": f"{value}\n" for key, value in ids.items()})
    text = exporter(root).scrape()
    assert b"precreated_objects" not in text
    assert b'lustre_osp_precreate_error{fs="lustre",target="OST0000",mdt="MDT0000"} 28\n' in text
