"""Quotas: how many are shown, and whether they are enforced."""

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
    beyond = shown(samples, text, "lustre_quota_ids_beyond_limit", "parameter")
    assert beyond == {"dt-0x0.glb-usr": "2", "OST0000.acct_user": "2"}
    everybody = exporter(root, quota_limit=0).scrape()
    assert len(shown(samples, everybody, "lustre_quota_granted_bytes", "id")) == 4


def accounts(*usage: tuple[int, int, int]) -> str:
    rows = [f"- id:      {i}\n  usage:   {{ inodes: {inodes}, kbytes: {used} }}\n" for i, inodes, used in usage]
    return "usr_accounting:\n" + "".join(rows)


def test_what_fell_below_zero_in_the_kernel_is_left_out(grow, exporter, samples) -> None:
    running = exporter(grow({
        "proc/fs/lustre/qmt/lustre-QMT0000/dt-0x0/glb-usr": limits(2**64 - 4096, 6),
        "proc/fs/lustre/osd-zfs/lustre-OST0000/quota_slave/acct_user": accounts(
            (0, 5, 4), (1, 2**64 - 1, 4), (2, 7, 2**54 - 3), (3, 8, 9)),
    }))  # fmt: skip
    text = running.scrape("quota")
    assert shown(samples, text, "lustre_quota_hard_limit_bytes", "id") == {"1000": "9216", "1001": "9216"}
    assert shown(samples, text, "lustre_quota_granted_bytes", "id") == {"1001": "6144"}
    assert shown(samples, text, "lustre_quota_used_files", "id") == {"0": "5", "3": "8"}
    assert shown(samples, text, "lustre_quota_used_bytes", "id") == {"0": "4096", "3": "9216"}
    assert running.skipped() == {"qmt.*.*.glb-usr": 1, "osd-zfs.*.quota_slave.acct_user": 4}


def test_accounts_are_rendered_again_only_if_they_changed(grow, exporter, samples) -> None:
    paths = [f"proc/fs/lustre/osd-ldiskfs/lustre-OST000{n}/quota_slave/acct_user" for n in (0, 1)]
    root = grow({path: accounts((0, 5, 4), (1000, 7, 6)) for path in paths})
    running = exporter(root)
    outcome = running.scraper.outcomes["quota"]
    first = running.scrape("quota")
    assert running.scrape("quota") == first
    assert (outcome.chunks, outcome.chunks_reused) == (4, 2)
    grow({paths[1]: accounts((0, 5, 4), (1000, 8, 9))})
    then = running.scrape("quota")
    assert (outcome.chunks, outcome.chunks_reused) == (6, 3)
    assert shown(samples, then, "lustre_quota_used_bytes", "target", "id") == {
        ("OST0000", "0"): "4096", ("OST0001", "0"): "4096", ("OST0000", "1000"): "6144", ("OST0001", "1000"): "9216"}


def test_accounts_are_sorted_and_the_first_entry_of_an_id_counts(grow, exporter) -> None:
    path = "proc/fs/lustre/osd-ldiskfs/lustre-OST0000/quota_slave/acct_user"
    root = grow({path: accounts((7, 1, 2), (3, 5, 6), (7, 9, 9))})
    line = 'lustre_quota_used_bytes{{fs="lustre",target="OST0000",type="user",id="{}"}} {}\n'
    assert (line.format(3, 6144) + line.format(7, 2048)).encode() in exporter(root, quota_limit=0).scrape("quota")
    limited = exporter(root, quota_limit=1).scrape("quota").decode()
    assert line.format(3, 6144) in limited
    assert line.format(7, 2048) not in limited


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
