"""Metadata targets: users of changelogs, OI scrub and LFSCK, HSM, and other targets as they see them."""

from tests.exporter.collectors.families import DEBUG, SYSFS, shown

SCRUB = f"{DEBUG}/osd-ldiskfs/lustre-OST0000/oi_scrub"


def test_a_run_that_starts_again_begins_at_zero_and_its_ends_continue(grow, exporter, samples) -> None:
    text = "status: {}\nflags:{}\nchecked: {}\nupdated: {}\nprior_updated: 1\nfailed: 0\nsuccess_count: {}\n"
    running = exporter(grow({SCRUB: text.format("scanning", " inconsistent", 90, 3, 4)}))
    before = running.scrape("scrub")
    grow({SCRUB: text.format("completed", "", 7, 0, 5)})
    after = running.scrape("scrub")
    name = "lustre_osd_scrub_checked_objects"
    assert [shown(samples, text, name, "target") for text in (before, after)] == [{"OST0000": "90"}, {"OST0000": "7"}]
    assert shown(samples, after, "lustre_osd_scrub_completed_total", "target") == {"OST0000": "5"}
    assert shown(samples, before, "lustre_osd_scrub_flag", "flag") == {"inconsistent": "1"}
    assert b"lustre_osd_scrub_flag" not in after
    assert shown(samples, after, "lustre_osd_scrub_state", "state") == {"completed": "1"}


def agent(uuid: str, ok: int, errors: int = 0) -> str:
    return f"uuid={uuid} archive_id=ANY requests=[current:1 ok:{ok} errors:{errors}]\n"


def test_requests_of_a_copytool_stay_in_the_sum_after_it_leaves(grow, exporter, samples) -> None:
    agents = f"{DEBUG}/mdt/lustre-MDT0000/hsm/agents"
    running = exporter(grow({agents: agent("a", 10, 1) + agent("b", 5)}))
    name = "lustre_hsm_agent_requests_done_total"
    assert shown(samples, running.scrape(), name, "result") == {"ok": "15", "error": "1"}
    grow({agents: agent("b", 6)})
    assert shown(samples, running.scrape(), name, "result") == {"ok": "16", "error": "1"}
    grow({agents: ""})
    text = running.scrape()
    assert shown(samples, text, name, "result") == {"ok": "16", "error": "1"}
    assert shown(samples, text, "lustre_hsm_agents", "target") == {"MDT0000": "0"}
    assert running.errors() == {}


def osp(target: str, mdt: str, creates: int, **numbers: object) -> dict[str, str]:
    name = f"lustre-{target}-osc-{mdt}"
    known = {"active": 1, "prealloc_status": 0, "sync_changes": 2, "prealloc_next_id": 5, "prealloc_last_id": 9,
             "prealloc_next_seq": "0x1", "prealloc_last_seq": "0x1"} | numbers  # fmt: skip
    stats = f"snapshot_time 9.5 secs.nsecs\nost_create {creates} samples [usecs] 1 1 {creates} 9\n"
    return {f"{SYSFS}/osp/{name}/{key}": f"{value}\n" for key, value in known.items()} | {
        f"{DEBUG}/osp/{name}/stats": stats
    }


def test_requests_to_targets_survive_one_that_starts_again_and_trouble_is_named_while_it_lasts(
        grow, exporter, samples) -> None:
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
