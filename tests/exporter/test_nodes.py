"""Servers, locks, the network: what is refused, what is bounded, what outlives its source."""

from __future__ import annotations

import pytest

DEBUG = "sys/kernel/debug/lustre"
SYSFS = "sys/fs/lustre"
MOUNT = "ffff9f0a8c3d1800"


def shown(samples, text: bytes, name: str, *labels: str) -> dict[object, str]:
    """{labels asked for: value} of one family."""
    found = {}
    for (family, pairs), value in samples(text).items():
        if family == name:
            key = tuple(dict(pairs).get(label, "") for label in labels)
            found[key[0] if len(key) == 1 else key] = value
    return found


# recovery


@pytest.mark.parametrize(
    ("status", "recovering"),
    [("INACTIVE", "0"), ("COMPLETE", "0"), ("RECOVERING", "1"), ("WAITING_FOR_CLIENTS", "1"), ("WAITING", "1"),
     ("NONSENSE", "1")],
)  # fmt: skip
def test_only_a_target_that_says_so_is_done_with_recovery(grow, exporter, samples, status, recovering) -> None:
    root = grow({
        f"{DEBUG}/obdfilter/lustre-OST0000/recovery_status": f"status: {status}\n",
        f"{DEBUG}/mdt/lustre-MDT0000/recovery_status": f"status: {status}\n",
    })  # fmt: skip
    text = exporter(root).scrape()
    assert shown(samples, text, "lustre_ost_recovering", "target") == {"OST0000": recovering}
    assert shown(samples, text, "lustre_mdt_recovering", "target") == {"MDT0000": recovering}


def test_a_status_that_cannot_be_read_is_recovery_and_is_counted(grow, exporter, samples) -> None:
    running = exporter(grow({f"{DEBUG}/obdfilter/lustre-OST0000/recovery_status": "status: COMPL"}))
    assert shown(samples, running.scrape(), "lustre_ost_recovering", "target") == {"OST0000": "1"}
    assert running.skipped()["obdfilter.*.recovery_status"] > 0


def test_a_status_that_is_absent_says_nothing(grow, exporter) -> None:
    assert b"recovering" not in exporter(grow({f"{SYSFS}/obdfilter/lustre-OST0000/degraded": "0\n"})).scrape()


# changelogs


def test_the_same_user_on_several_targets(grow, exporter, samples) -> None:
    head = "current_index: {}\nID                            index (idle) mask\n"
    root = grow({
        f"{DEBUG}/mdd/lustre-MDT000{i}/changelog_users": head.format(100 * i) + f"cl1     {60 * i} ({i}) mask=MARK\n"
        for i in (0, 1, 2)
    })  # fmt: skip
    behind = shown(samples, exporter(root).scrape(), "lustre_changelog_user_behind_records", "target", "user")
    assert behind == {("MDT0000", "cl1"): "0", ("MDT0001", "cl1"): "40", ("MDT0002", "cl1"): "80"}


def test_a_user_ahead_of_the_log_is_left_out_and_counted(grow, exporter, samples) -> None:
    text = "current_index: 5\nID   index (idle) mask\ncl1   9 (1)\ncl2   4 (1)\n"
    running = exporter(grow({f"{DEBUG}/mdd/lustre-MDT0000/changelog_users": text}))
    assert shown(samples, running.scrape(), "lustre_changelog_user_behind_records", "user") == {"cl2": "1"}
    assert running.skipped() == {"mdd.*.changelog_users": 1}


# locks


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


def test_a_number_that_wrapped_is_left_out_of_the_sum_and_counted(grow, exporter, samples) -> None:
    running = exporter(grow(
        namespace("filter-lustre-OST0000_UUID", lock_count=-3, lock_timeouts=-1)
        | namespace("filter-lustre-OST0001_UUID", lock_count=7, lock_timeouts=2)
    ))  # fmt: skip
    text = running.scrape()
    assert shown(samples, text, "lustre_ldlm_locks", "namespace") == {"ost": "7"}
    assert shown(samples, text, "lustre_ldlm_lock_timeouts_total", "namespace") == {"ost": "2"}
    assert running.skipped() == {"ldlm.namespaces.*.lock_count": 1, "ldlm.namespaces.*.lock_timeouts": 1}


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


# HSM


def agent(uuid: str, ok: int, errors: int = 0) -> str:
    return f"uuid={uuid} archive_id=ANY requests=[current:1 ok:{ok} errors:{errors}]\n"


def test_what_a_copytool_has_done_stays_when_it_goes(grow, exporter, samples) -> None:
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


def test_a_state_of_the_coordinator_that_is_none_is_counted(grow, exporter, samples) -> None:
    running = exporter(grow({f"{SYSFS}/mdt/lustre-MDT0000/hsm_control": "enab"}))
    assert b"lustre_hsm_coordinator" not in running.scrape()
    assert running.skipped() == {"mdt.*.hsm_control": 1}


# quota


def limits(*granted: int) -> str:
    rows = [
        f"- id:      {1000 + i}\n  limits:  {{ hard: 9, soft: 8, granted: {number}, time: 0 }}\n"
        for i, number in enumerate(granted)
    ]
    return "global_pool0_dt_usr\n" + "".join(rows)


def test_quotas_are_bounded_by_what_is_used(grow, exporter, samples) -> None:
    accounts = "".join(f"- id:      {i}\n  usage:   {{ inodes: {9 - i}, kbytes: 4 }}\n" for i in range(4))
    root = grow({
        "proc/fs/lustre/qmt/lustre-QMT0000/dt-0x0/glb-usr": limits(5, 0, 7, 6),
        "proc/fs/lustre/osd-zfs/lustre-OST0000/quota_slave/acct_user": "usr_accounting:\n" + accounts,
    })  # fmt: skip
    text = exporter(root, quota_limit=2).scrape()
    assert shown(samples, text, "lustre_quota_granted_bytes", "id") == {"1002": "7168", "1003": "6144"}
    assert shown(samples, text, "lustre_quota_used_files", "id") == {"0": "9", "1": "8"}
    assert shown(samples, text, "lustre_quota_ids_beyond_limit", "parameter") == {
        "dt-0x0.glb-usr": "2",
        "OST0000.acct_user": "2",
    }
    everybody = exporter(root, quota_limit=0).scrape()
    assert len(shown(samples, everybody, "lustre_quota_granted_bytes", "id")) == 4


def test_a_target_without_accounts_says_so(grow, exporter) -> None:
    path = "proc/fs/lustre/osd-ldiskfs/lustre-OST0000/quota_slave/acct_project"
    running = exporter(grow({path: "not supported\n"}))
    assert running.scrape() == b""
    assert running.skipped() == {}


# the node


@pytest.mark.parametrize(
    ("text", "value"),
    [("healthy\n", "1"), ("NOT HEALTHY\n", "0"), ("LBUG\n", "0"), ("LBUG\nNOT HEALTHY\n", "0"),
     ("device lustre-OST0001 reported unhealthy\nNOT HEALTHY\n", "0")],
)  # fmt: skip
def test_health(grow, exporter, text, value) -> None:
    running = exporter(grow({f"{SYSFS}/health_check": text}))
    assert f"\nlustre_healthy {value}\n".encode() in running.scrape()
    assert running.skipped() == {}


def test_health_that_is_neither_is_not_shown(grow, exporter) -> None:
    running = exporter(grow({f"{SYSFS}/health_check": "health"}))
    assert running.scrape() == b""
    assert running.skipped() == {"health_check": 1}


def test_an_interface_of_several_cpu_partitions_is_one(grow, exporter, samples) -> None:
    nis = (
        "nid                      status alive refs peer  rtr   max    tx   min\n"
        "10.0.0.1@o2ib                up    -1    1    8    0   128   127   100\n"
        "10.0.0.1@o2ib              down    -1    1    8    0   128    -3    -9\n"
    )
    text = exporter(grow({"sys/kernel/debug/lnet/nis": nis})).scrape()
    assert shown(samples, text, "lustre_lnet_interface_credits", "nid") == {"10.0.0.1@o2ib": "124"}
    assert shown(samples, text, "lustre_lnet_interface_max_credits", "nid") == {"10.0.0.1@o2ib": "256"}
    assert shown(samples, text, "lustre_lnet_interface_up", "nid") == {"10.0.0.1@o2ib": "0"}


def test_what_sends_a_request_is_never_read(grow, exporter) -> None:
    """Reading ``ping`` asks a server. Here it is a folder, so that reading it would be an error."""
    devices = (f"osc/lustre-OST0000-osc-{MOUNT}", f"mdc/lustre-MDT0000-mdc-{MOUNT}", "osp/lustre-OST0000-osc-MDT0000",
               "lwp/lustre-MDT0000-lwp-OST0000", "mgc/MGC10.0.2.15@tcp")  # fmt: skip
    root = grow({f"{SYSFS}/{device}/active": "1\n" for device in devices})
    for device in devices:
        (root / SYSFS / device / "ping").mkdir()
    running = exporter(root, osp_per_target=True)
    assert b"lustre_osp_active" in running.scrape()
    assert running.errors() == {}


def test_object_ids_of_two_sequences_are_not_subtracted(grow, exporter) -> None:
    ids = {"next_id": "201", "last_id": "33", "next_seq": "0x280000401", "last_seq": "0x280000402", "status": "-28"}
    root = grow({f"{SYSFS}/osp/lustre-OST0000-osc-MDT0000/prealloc_{key}": f"{value}\n" for key, value in ids.items()})
    text = exporter(root).scrape()
    assert b"precreated_objects" not in text
    assert b'lustre_osp_precreate_error{fs="lustre",target="OST0000",mdt="MDT0000"} 28\n' in text


def test_all_targets_have_the_same_buckets(grow, exporter, samples) -> None:
    table = (
        "snapshot_time:   9.5 secs.nsecs\n\n                           read      |     write\n"
        "disk I/O size          ios   % cum % |  ios         % cum %\n{}:\t\t         1 100 100   |   50 100 100\n"
    )
    root = grow({
        f"{DEBUG}/osd-ldiskfs/lustre-OST000{i}/brw_stats": table.format(size) for i, size in enumerate(("4K", "32K"))
    })  # fmt: skip
    text = exporter(root).scrape()
    found = shown(samples, text, "lustre_osd_io_size_bytes_bucket", "target", "direction", "le")
    sizes = [f"{4096.0 * 2**power}" for power in range(13)]
    assert found == {
        (target, direction, le): str(count if le == "+Inf" or float(le) >= largest else 0)
        for target, largest in (("OST0000", 4096), ("OST0001", 32768))
        for direction, count in (("read", 1), ("write", 50))
        for le in (*sizes, "+Inf")
    }


def test_latencies_of_targets_of_a_pool_are_added_up(grow, exporter, samples) -> None:
    text = "io_latency_by_size:\nsnapshot_time: 9.5\nstart_time: 1.0\nelapsed_time: 8.5\nrd_4K: {{ {}}}\n"
    root = grow({
        f"{DEBUG}/osc/lustre-OST0000-osc-{MOUNT}/io_latency_stats": text.format("1us: 3, "),
        f"{DEBUG}/osc/lustre-OST0001-osc-{MOUNT}/io_latency_stats": text.format("0us: 2, 2us: 4, "),
    })  # fmt: skip
    found = shown(samples, exporter(root).scrape(), "lustre_osc_io_latency_seconds_bucket", "le")
    assert [found.pop(le) for le in ("1.024e-06", "2.048e-06", "4.096e-06")] == ["2", "5", "9"]
    assert set(found.values()) == {"9"}


def test_a_client_that_is_gone_has_no_series(grow, exporter, samples) -> None:
    exports = "proc/fs/lustre/obdfilter/lustre-OST0000/exports"
    line = "snapshot_time 9.5 secs.nsecs\nread_bytes 3 samples [bytes] 1 1 {} 9\n"
    root = grow({f"{exports}/10.0.0.{i}@tcp/stats": line.format(i) for i in (1, 2)})
    running = exporter(root)
    name = "lustre_ost_client_read_bytes_total"
    assert shown(samples, running.scrape(), name, "nid") == {"10.0.0.1@tcp": "1", "10.0.0.2@tcp": "2"}
    (root / exports / "10.0.0.1@tcp/stats").unlink()
    (root / exports / "10.0.0.1@tcp").rmdir()
    assert shown(samples, running.scrape(), name, "nid") == {"10.0.0.2@tcp": "2"}


def test_room_that_wrapped_is_no_room(grow, exporter, samples) -> None:
    numbers = {"kbytestotal": 1000, "kbytesfree": -5, "kbytesavail": -9, "tot_granted": -1, "num_exports": 3}
    root = grow({f"{SYSFS}/obdfilter/lustre-OST0000/{name}": f"{value}\n" for name, value in numbers.items()})
    running = exporter(root)
    shown_names = {name for name, _ in samples(running.scrape("ost"))}
    assert shown_names == {"lustre_ost_size_bytes", "lustre_ost_exports"}
    assert set(running.skipped()) == {f"obdfilter.*.{name}" for name in ("kbytesfree", "kbytesavail", "tot_granted")}


# other targets as metadata targets see them


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


def test_a_management_server_that_says_neither_is_counted(grow, exporter) -> None:
    running = exporter(grow({f"{DEBUG}/mgc/MGC10.0.0.1@tcp/ir_state": "imperative_recovery: PERHAPS\n"}))
    assert b"lustre_mgc_imperative_recovery" not in running.scrape()
    assert running.skipped() == {"mgc.*.ir_state": 1}


# scrubs and checks


SCRUB = f"{DEBUG}/osd-ldiskfs/lustre-OST0000/oi_scrub"
CHECK = f"{DEBUG}/mdd/lustre-MDT0000/lfsck_namespace"


def test_a_run_that_starts_anew_begins_at_zero_and_its_ends_go_on(grow, exporter, samples) -> None:
    text = "status: {}\nflags:{}\nchecked: {}\nupdated: {}\nprior_updated: 1\nfailed: 0\nsuccess_count: {}\n"
    running = exporter(grow({SCRUB: text.format("scanning", " inconsistent", 90, 3, 4)}))
    before = running.scrape("scrub")
    grow({SCRUB: text.format("completed", "", 7, 0, 5)})
    after = running.scrape("scrub")
    assert [shown(samples, text, "lustre_osd_scrub_checked_objects", "target") for text in (before, after)] == [
        {"OST0000": "90"},
        {"OST0000": "7"},
    ]
    assert shown(samples, after, "lustre_osd_scrub_completed_total", "target") == {"OST0000": "5"}
    assert shown(samples, before, "lustre_osd_scrub_flag", "flag") == {"inconsistent": "1"}
    assert b"lustre_osd_scrub_flag" not in after
    assert shown(samples, after, "lustre_osd_scrub_state", "state") == {"completed": "1"}


def test_a_state_nobody_knows_and_numbers_that_wrapped_are_left_out_and_counted(grow, exporter) -> None:
    running = exporter(grow({
        SCRUB: "status: dreaming\nfailed: -1\nupdated: 18446744073709551615\nprior_updated: 2\n",
        CHECK: "status: dreaming\nfailed_phase1: -1\n",
    }))  # fmt: skip
    assert running.scrape() == b""
    assert running.skipped() == {"osd-ldiskfs.*.oi_scrub": 3, "mdd.*.lfsck_namespace": 2}


def test_a_problem_told_twice_is_one_series(grow, exporter, samples) -> None:
    running = exporter(grow({CHECK: "dangling_repaired: 3\ndangling_inconsistent: 4\nflags: auto,auto\n"}))
    assert len(samples(running.scrape("lfsck"))) == 2


def test_pages_that_wrapped_are_no_pages(grow, exporter) -> None:
    text = "unstable_check:            1\nunstable_pages:           -2\nunstable_mb:               0\n"
    running = exporter(grow({f"{DEBUG}/llite/lustre-{MOUNT}/unstable_stats": text}))
    assert running.scrape("page_cache").count(b"\nlustre_llite_unstable") == 1
    assert running.skipped() == {"llite.*.unstable_stats": 1}



# whether quotas are enforced


def test_a_target_that_lost_the_quota_master_says_so(grow, exporter, samples) -> None:
    folder = "proc/fs/lustre/osd-ldiskfs/lustre-OST0000/quota_slave_dt"
    text = "type: dt\nquota enabled: u\nconn to master: {}\nuser uptodate: glb[1],slv[{}],reint[0]\n"
    running = exporter(grow({f"{folder}/info": text.format("setup", 1)}))
    copies, connection = "lustre_quota_slave_up_to_date", "lustre_quota_slave_connected"
    first = running.scrape("quota_slave")
    grow({f"{folder}/info": text.format("not setup yet", 0)})
    then = running.scrape("quota_slave")
    assert [shown(samples, text, copies, "type") for text in (first, then)] == [{"user": "1"}, {"user": "0"}]
    assert [shown(samples, text, connection, "resource") for text in (first, then)] == [{"bytes": "1"}, {"bytes": "0"}]
    grow({f"{folder}/info": "quota enabled: ?\nconn to master: ?\nuser uptodate: ?\n"})
    assert running.scrape("quota_slave") == b""
    assert running.skipped() == {"osd-ldiskfs.*.quota_slave_dt.info": 3}


# many at once


def in_flight(reads: dict[int, int]) -> str:
    """``rpc_stats`` of a client that had so many requests under way when it sent a read."""
    rows, counted, total = "", 0, sum(reads.values())
    for number in range(1, max(reads) + 1):
        counted += reads.get(number, 0)
        share = 100 * reads.get(number, 0) // total
        rows += f"{number}:\t\t{reads.get(number, 0):10} {share:3} {100 * counted // total:3}   |          0   0   0\n"
    return (
        "snapshot_time:         9.5 (secs.nsecs)\nread RPCs in flight:  0\nwrite RPCs in flight: 0\n"
        "pending write pages:  0\npending read pages:   0\n\n\t\t\tread\t\t\twrite\n"
        f"rpcs in flight        rpcs   % cum % |       rpcs   % cum %\n{rows}"
    )


@pytest.mark.parametrize("per_target", [False, True])
def test_clients_that_send_many_requests_at_once_add_up_with_those_that_send_few(
    grow, exporter, samples, per_target
) -> None:
    """The kernel's 31st bucket counts all that is more."""
    reads = {"OST0000": {1: 5, 17: 4}, "OST0001": {2: 7}, "OST0002": {1: 1, 30: 2, 31: 8}}
    files = {f"{DEBUG}/osc/lustre-{target}-osc-{MOUNT}/rpc_stats": in_flight(of) for target, of in reads.items()}
    running = exporter(grow(files), osc_per_target=per_target)
    sums: dict[float, int] = {}
    name, labels = "lustre_osc_rpcs_in_flight_at_send_bucket", ("direction", "le") + ("target",) * per_target
    for key, value in shown(samples, running.scrape("osc"), name, *labels).items():
        if key[0] == "read":
            sums[float(key[1])] = sums.get(float(key[1]), 0) + int(value)
    numbers = [n for of in reads.values() for number, times in of.items() for n in [number] * times]
    assert sums == {
        **{float(le): sum(number <= le for number in numbers) for le in range(1, 31)},
        float("inf"): len(numbers),
    }
    assert running.skipped() == {}
