"""Servers: sums that outlive their source, recovery, checks, clients, rules of services. See also test_golden."""

import pytest

from tests.exporter.collectors.families import DEBUG, SYSFS, shown

AGENTS = f"{DEBUG}/mdt/lustre-MDT0000/hsm/agents"
SERVICE = f"{DEBUG}/ost/OSS/ost_io"
POLICIES = "\nregular_requests:\n  - name: tbf jobid\n    state: {}\n    fallback: no\n    queued: 7\n    active: 3\n"
RULES = "regular_requests:\nCPT 0:\n"


def locks_of(target: str) -> str:
    return f"{SYSFS}/ldlm/namespaces/filter-lustre-{target}_UUID"


def timeouts(target: str, count: int) -> dict[str, str | None]:
    return {f"{locks_of(target)}/lock_timeouts": f"{count}\n"}


def agent(uuid: str, ok: int, errors: int = 0) -> str:
    return f"uuid={uuid} archive_id=ANY requests=[current:1 ok:{ok} errors:{errors}]\n"


def creates(target: str, count: int) -> dict[str, str]:
    stats = f"snapshot_time 9.5 secs.nsecs\nost_create {count} samples [usecs] 1 1 {count} 9\n"
    return {f"{DEBUG}/osp/lustre-{target}-osc-MDT0000/stats": stats}


@pytest.mark.parametrize(("name", "label", "readings"), [
    ("lustre_ldlm_lock_timeouts_total", "namespace", [
        (timeouts("OST0000", 5) | timeouts("OST0001", 2), {"ost": "7"}),
        ({locks_of("OST0000"): None} | timeouts("OST0001", 3), {"ost": "8"}),
        (timeouts("OST0000", 1), {"ost": "9"})]),
    ("lustre_hsm_agent_requests_done_total", "result", [
        ({AGENTS: agent("a", 10, 1) + agent("b", 5)}, {"ok": "15", "error": "1"}),
        ({AGENTS: agent("b", 6)}, {"ok": "16", "error": "1"}),
        ({AGENTS: ""}, {"ok": "16", "error": "1"})]),
    ("lustre_osp_operations_total", "kind", [
        (creates("OST0000", 10) | creates("OST0001", 5), {"OST": "15"}),
        (creates("OST0000", 11) | creates("OST0001", 2), {"OST": "18"})]),
], ids=["a target that moves to another server", "a copytool that leaves", "a target that starts again"])
def test_a_sum_survives(grow, exporter, samples, name, label, readings) -> None:
    running = exporter(grow(readings[0][0]))
    for files, expected in readings:
        grow(files)
        assert shown(samples, running.scrape(), name, label) == expected
        assert running.errors() == {}


def test_trouble_of_a_target_is_named_while_it_lasts(grow, exporter, samples) -> None:
    folder = f"{SYSFS}/osp/lustre-OST0001-osc-MDT0000"
    running = exporter(grow({}))
    for active, status, expected in ((1, 0, ({}, {})), (0, -30, ({("OST0001", "MDT0000"): "0"}, {"OST0001": "30"})),
                                     (1, 0, ({}, {}))):
        grow({f"{folder}/active": f"{active}\n", f"{folder}/prealloc_status": f"{status}\n"})
        text = running.scrape("osp")
        assert (shown(samples, text, "lustre_osp_active", "target", "mdt"),
                shown(samples, text, "lustre_osp_precreate_error", "target")) == expected


def test_object_ids_of_two_sequences_are_not_subtracted(grow, exporter) -> None:
    ids = {"next_id": "201", "last_id": "33", "next_seq": "0x280000401", "last_seq": "0x280000402", "status": "-28"}
    root = grow({f"{SYSFS}/osp/lustre-OST0000-osc-MDT0000/prealloc_{key}": f"{value}\n" for key, value in ids.items()})
    text = exporter(root).scrape()
    assert b"precreated_objects" not in text
    assert b'lustre_osp_precreate_error{fs="lustre",target="OST0000",mdt="MDT0000"} 28\n' in text


def test_a_check_that_runs_again_begins_at_zero_and_its_ends_continue(grow, exporter, samples) -> None:
    place = f"{DEBUG}/osd-ldiskfs/lustre-OST0000/oi_scrub"
    text = "status: {}\nflags:{}\nchecked: {}\nupdated: {}\nprior_updated: 1\nfailed: 0\nsuccess_count: {}\n"
    running = exporter(grow({place: text.format("scanning", " inconsistent", 90, 3, 4)}))
    before = running.scrape("scrub")
    grow({place: text.format("completed", "", 7, 0, 5)})
    after = running.scrape("scrub")
    name = "lustre_osd_scrub_checked_objects"
    assert [shown(samples, text, name, "target") for text in (before, after)] == [{"OST0000": "90"}, {"OST0000": "7"}]
    assert shown(samples, after, "lustre_osd_scrub_completed_total", "target") == {"OST0000": "5"}
    assert shown(samples, before, "lustre_osd_scrub_flag", "flag") == {"inconsistent": "1"}
    assert b"lustre_osd_scrub_flag" not in after
    assert shown(samples, after, "lustre_osd_scrub_state", "state") == {"completed": "1"}


@pytest.mark.parametrize(("status", "recovering", "is_known"), [
    ("INACTIVE\n", "0", True), ("COMPLETE\n", "0", True), ("RECOVERING\n", "1", True), ("NONSENSE\n", "1", True),
    ("COMPL", "1", False),
])  # fmt: skip
def test_only_a_target_that_says_so_is_done_with_recovery(
        grow, exporter, samples, status, recovering, is_known) -> None:
    places = [f"{DEBUG}/obdfilter/lustre-OST0000/recovery_status", f"{DEBUG}/mdt/lustre-MDT0000/recovery_status"]
    running = exporter(grow(dict.fromkeys(places, f"status: {status}")))
    text = running.scrape()
    assert shown(samples, text, "lustre_ost_recovering", "target") == {"OST0000": recovering}
    assert shown(samples, text, "lustre_mdt_recovering", "target") == {"MDT0000": recovering}
    assert (running.skipped() == {}) == is_known


def test_a_status_that_is_absent_says_nothing(grow, exporter) -> None:
    assert b"recovering" not in exporter(grow({f"{SYSFS}/obdfilter/lustre-OST0000/degraded": "0\n"})).scrape()


def test_a_departed_client_has_no_series(grow, exporter, samples) -> None:
    line = "snapshot_time 9.5 secs.nsecs\nread_bytes 3 samples [bytes] 1 1 {} 9\n"
    places = [f"proc/fs/lustre/obdfilter/lustre-OST0000/exports/10.0.0.{number}@tcp" for number in (1, 2)]
    running = exporter(grow({f"{place}/stats": line.format(number) for number, place in enumerate(places, 1)}))
    name = "lustre_ost_client_read_bytes_total"
    assert shown(samples, running.scrape(), name, "nid") == {"10.0.0.1@tcp": "1", "10.0.0.2@tcp": "2"}
    grow({places[0]: None})
    assert shown(samples, running.scrape(), name, "nid") == {"10.0.0.2@tcp": "2"}


def test_rules_are_not_read_while_the_filter_is_stopped(grow, exporter) -> None:
    for state, is_shown in (("stopped", False), ("started", True)):
        root = grow({f"{SERVICE}/nrs_policies": POLICIES.format(state),
                     f"{SERVICE}/nrs_tbf_rule": f"{RULES}default * 10000, ref 0\n"})  # fmt: skip
        assert (b"lustre_service_tbf" in exporter(root).scrape("services")) is is_shown


def test_of_very_many_rules_the_first_are_shown(grow, exporter) -> None:
    many = "".join(f"r{number} jobid={{{'x' * 900}}} 5, ref 0\n" for number in range(5000))
    running = exporter(grow({f"{SERVICE}/nrs_policies": POLICIES.format("started"),
                             f"{SERVICE}/nrs_tbf_rule": RULES + many}))  # fmt: skip
    lines = [line for line in running.scrape("services").splitlines() if line.startswith(b"lustre_service_tbf_rule_r")]
    assert len(lines) == 200
    assert max(map(len, lines)) < 500
