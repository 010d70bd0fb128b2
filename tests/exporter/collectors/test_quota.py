"""Quotas: how many are shown, and whether they are enforced."""

from __future__ import annotations

from tests.exporter.collectors.families import shown


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
