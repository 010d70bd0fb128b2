"""Policies for the order of requests and their rules, backends of PCC, and quotas of ranges of ids."""

from __future__ import annotations

from tests.exporter.collectors.families import shown
from tests.lustre.formats.test_any_bytes import WRITTEN

SERVICE = "sys/kernel/debug/lustre/ost/OSS/ost_io"
POLICIES = """
regular_requests:
  - name: fifo
    state: started
    fallback: yes
    queued: 0
    active: 2

  - name: tbf jobid
    state: {state}
    fallback: no
    queued: 7
    active: 3

high_priority_requests:
  - name: fifo
    state: started
    fallback: yes
    queued: 0
    active: 0
"""


def test_rules_of_the_token_bucket_filter_and_the_classes_that_use_them(grow, exporter, samples) -> None:
    running = exporter(grow({f"{SERVICE}/nrs_policies": POLICIES.format(state="started"),
                             f"{SERVICE}/nrs_tbf_rule": WRITTEN["nrs_tbf_rule"]}))  # fmt: skip
    text = running.scrape("services")
    assert b'rule="tierd_2",condition="jobid={cp.1001 fio_rand.1001}"' in text
    assert shown(samples, text, "lustre_service_tbf_rule_rate", "priority", "rule") == {
        ("regular", "tierd_2"): "50", ("regular", "bad"): "5", ("regular", "tierd_1"): "20",
        ("regular", "default"): "10000", ("high_priority", "tierd_1"): "20", ("high_priority", "default"): "10000",
    }  # fmt: skip
    assert shown(samples, text, "lustre_service_tbf_rule_classes", "priority", "rule")["regular", "tierd_1"] == "3"
    assert shown(samples, text, "lustre_service_policy_info", "priority", "policy", "by") == {
        ("regular", "tbf", "jobid"): "1",
    }  # fmt: skip
    assert shown(samples, text, "lustre_service_policy_queued_requests", "priority", "policy")["regular", "tbf"] == "7"
    assert running.skipped() == {}


def test_rules_are_not_read_while_the_filter_is_stopped(grow, exporter) -> None:
    running = exporter(grow({f"{SERVICE}/nrs_policies": POLICIES.format(state="stopped"),
                             f"{SERVICE}/nrs_tbf_rule": WRITTEN["nrs_tbf_rule"]}))  # fmt: skip
    assert b"lustre_service_tbf" not in running.scrape("services")


def test_backends_of_the_persistent_client_cache(grow, exporter, samples) -> None:
    place = "sys/kernel/debug/lustre/llite/lustre-ff1100011d6c9800/pcc"
    mounts = {"proc/mounts": "m@tcp:/lustre /mnt lustre rw 0 0\n"}
    text = exporter(grow({place: WRITTEN["pcc"], **mounts})).scrape("pcc")
    assert shown(samples, text, "lustre_llite_pcc_backend_info", "mount", "path", "rwid", "roid") == {
        ("/mnt", "/mnt/pcc", "2", "3"): "1", ("/mnt", "/mnt/b", "0", "4"): "1",
    }  # fmt: skip


def test_quotas_of_ranges_of_ids_are_families_of_their_own(grow, exporter, samples) -> None:
    entry = "- id:      1000\n  limits:  { hard: 40, soft: 20, granted: 30, time: 604800 }\n"
    files = {f"proc/fs/lustre/qmt/lustre-QMT0000/{pool}/glb-usr": f"global_pool0_dt_usr\n{entry}"
             for pool in ("dt-0x0", "dt-flash", "lqa-dt-teams", "lqa-md-teams")}  # fmt: skip
    text = exporter(grow(files)).scrape("quota")
    assert shown(samples, text, "lustre_quota_lqa_granted_bytes", "lqa", "id") == {("teams", "1000"): "30720"}
    assert shown(samples, text, "lustre_quota_lqa_hard_limit_files", "lqa", "id") == {("teams", "1000"): "40"}
    assert shown(samples, text, "lustre_quota_granted_bytes", "pool") == {"": "30720", "flash": "30720"}


def test_of_very_many_rules_the_first_are_shown(grow, exporter, samples) -> None:
    many = "".join(f"r{number} jobid={{{'x' * 900}}} 5, ref 0\n" for number in range(5000))
    running = exporter(grow({f"{SERVICE}/nrs_policies": POLICIES.format(state="started"),
                             f"{SERVICE}/nrs_tbf_rule": f"regular_requests:\nCPT 0:\n{many}"}))  # fmt: skip
    lines = [line for line in running.scrape("services").splitlines() if line.startswith(b"lustre_service_tbf_rule_r")]
    assert len(lines) == 200
    assert max(map(len, lines)) < 500
