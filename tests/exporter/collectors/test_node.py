"""The node as a whole: health, network, what is never read."""

import pytest

from tests.exporter.collectors.families import DEBUG, MOUNT, SYSFS


@pytest.mark.parametrize(("text", "value"), [
    ("healthy\n", "1"), ("NOT HEALTHY\n", "0"), ("LBUG\n", "0"), ("LBUG\nNOT HEALTHY\n", "0"),
    ("device lustre-OST0001 reported unhealthy\nNOT HEALTHY\n", "0"),
])  # fmt: skip
def test_health(grow, exporter, text, value) -> None:
    running = exporter(grow({f"{SYSFS}/health_check": text}))
    assert f"\nlustre_healthy {value}\n".encode() in running.scrape()
    assert running.skipped() == {}


def test_parameters_that_send_a_request_are_never_read(grow, exporter) -> None:
    """Reading ``ping`` asks a server. Here it is a folder, so that reading it would be an error."""
    devices = (f"osc/lustre-OST0000-osc-{MOUNT}", f"mdc/lustre-MDT0000-mdc-{MOUNT}", "osp/lustre-OST0000-osc-MDT0000",
               "lwp/lustre-MDT0000-lwp-OST0000", "mgc/MGC10.0.2.15@tcp")  # fmt: skip
    root = grow({f"{SYSFS}/{device}/active": "1\n" for device in devices})
    for device in devices:
        (root / SYSFS / device / "ping").mkdir()
    running = exporter(root, osp_per_target=True)
    assert b"lustre_osp_active" in running.scrape()
    assert running.errors() == {}


OST, CHECK = f"{SYSFS}/obdfilter/lustre-OST000", f"{DEBUG}/mdd/lustre-MDT0000/lfsck_namespace"
LOCKS = f"{SYSFS}/ldlm/namespaces/filter-lustre-OST000"


@pytest.mark.parametrize(("files", "shown", "skipped"), [
    ({f"{SYSFS}/health_check": "health"}, [], {"health_check": 1}),
    ({f"{DEBUG}/mgc/MGC10.0.0.1@tcp/ir_state": "imperative_recovery: PERHAPS\n"}, [], {"mgc.*.ir_state": 1}),
    ({f"{SYSFS}/mdt/lustre-MDT0000/hsm_control": "enab"}, [], {"mdt.*.hsm_control": 1}),
    ({f"{DEBUG}/mdt/lustre-MDT0000/hsm/agents": ""},
     [f'lustre_hsm_{name}{{fs="lustre",target="MDT0000"}} 0' for name in ("agents", "agent_requests")], {}),
    ({f"{DEBUG}/osd-ldiskfs/lustre-OST0000/oi_scrub": "status: dreaming\nfailed: -1\nupdated: 18446744073709551615\n"
      "prior_updated: 2\n"}, [], {"osd-ldiskfs.*.oi_scrub": 3}),
    ({CHECK: "status: dreaming\nfailed_phase1: -1\n"}, [], {"mdd.*.lfsck_namespace": 2}),
    ({"proc/fs/lustre/osd-ldiskfs/lustre-OST0000/quota_slave/acct_project": "not supported\n"}, [], {}),
    ({f"{DEBUG}/osd-ldiskfs/lustre-OST0000/io_latency_stats": "io_latency_by_size:\nrd_8K: { uninit }\n"}, [], {}),
    ({f"{OST}0/kbytesfree": "12\0\n", f"{OST}1/kbytesfree": "12345"}, [], {"obdfilter.*.kbytesfree": 2}),
    ({f"{OST}0/kbytestotal": "1000\n", f"{OST}0/kbytesfree": "-5\n", f"{OST}0/tot_granted": "-1\n"},
     ['lustre_ost_size_bytes{fs="lustre",target="OST0000"} 1024000'],
     {"obdfilter.*.kbytesfree": 1, "obdfilter.*.tot_granted": 1}),
    ({f"{DEBUG}/llite/lustre-{MOUNT}/unstable_stats": "unstable_check:   1\nunstable_pages:   -2\nunstable_mb:   0\n"},
     ['lustre_llite_unstable_bytes{fs="lustre",mount=""} 0'], {"llite.*.unstable_stats": 1}),
    ({f"{DEBUG}/llite/lustre-{MOUNT}/stats": "open 4 samples [regs]\nopen 4 samples [regs]\n"},
     ['lustre_llite_operations_total{fs="lustre",mount="",operation="open"} 4'], {"llite.*.stats": 1}),
    ({f"{LOCKS}{number}_UUID/{name}": text for name in ("lock_count", "lock_timeouts")
      for number, text in enumerate(("-3\n", "7\n"))},
     ['lustre_ldlm_locks{fs="lustre",mount="",namespace="ost"} 7',
      'lustre_ldlm_lock_timeouts_total{fs="lustre",mount="",namespace="ost"} 7'],
     {"ldlm.namespaces.*.lock_count": 1, "ldlm.namespaces.*.lock_timeouts": 1}),
    ({f"{DEBUG}/mdd/lustre-MDT0000/changelog_users": "current_index: 5\nID   index mask\ncl1   9\ncl2   4\n"},
     ['lustre_changelog_records_total{fs="lustre",target="MDT0000"} 5',
      'lustre_changelog_user_behind_records{fs="lustre",target="MDT0000",user="cl2"} 1'], {"mdd.*.changelog_users": 1}),
    ({CHECK: "dangling_repaired: 3\ndangling_inconsistent: 4\nflags: auto,auto\n"},
     ['lustre_lfsck_flag{fs="lustre",target="MDT0000",kind="namespace",flag="auto"} 1',
      'lustre_lfsck_problems{fs="lustre",target="MDT0000",kind="namespace",problem="dangling"} 4'], {}),
], ids=["no health", "no state of recovery", "half a word", "no copytool", "scrub", "lfsck", "no quota", "no latencies",
        "no line of a number", "room that wrapped", "pages that wrapped", "a counter twice", "locks that wrapped",
        "a user ahead of the log", "a problem twice"])
def test_what_cannot_be_is_left_out_and_counted(grow, exporter, files, shown, skipped) -> None:
    running = exporter(grow(files))
    assert [line for line in running.scrape().decode().splitlines() if not line.startswith("#")] == shown
    assert running.skipped() == skipped
