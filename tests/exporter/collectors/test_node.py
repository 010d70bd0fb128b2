"""The node as a whole: health, network, what is never read."""

from __future__ import annotations

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


@pytest.mark.parametrize(("parameter", "text", "skipped"), [
    (f"{SYSFS}/health_check", "health", {"health_check": 1}),
    (f"{DEBUG}/mgc/MGC10.0.0.1@tcp/ir_state", "imperative_recovery: PERHAPS\n", {"mgc.*.ir_state": 1}),
    (f"{SYSFS}/mdt/lustre-MDT0000/hsm_control", "enab", {"mdt.*.hsm_control": 1}),
    (f"{DEBUG}/osd-ldiskfs/lustre-OST0000/oi_scrub",
     "status: dreaming\nfailed: -1\nupdated: 18446744073709551615\nprior_updated: 2\n", {"osd-ldiskfs.*.oi_scrub": 3}),
    (f"{DEBUG}/mdd/lustre-MDT0000/lfsck_namespace", "status: dreaming\nfailed_phase1: -1\n",
     {"mdd.*.lfsck_namespace": 2}),
    ("proc/fs/lustre/osd-ldiskfs/lustre-OST0000/quota_slave/acct_project", "not supported\n", {}),
])
def test_words_nobody_knows_and_numbers_that_wrapped_are_left_out_and_counted(
        grow, exporter, parameter, text, skipped) -> None:
    running = exporter(grow({parameter: text}))
    assert running.scrape() == b""
    assert running.skipped() == skipped
