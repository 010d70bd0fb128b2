"""What holds for every parser: no bytes make it raise, a cut file gives no wrong number, time grows with length."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lustre.formats import (
    batch_stats,
    brw_stats,
    changelog_users,
    df,
    extents_stats,
    health_check,
    hsm_agents,
    import_,
    io_latency_stats,
    job_stats,
    lfsck,
    lnet,
    max_cached_mb,
    mgs_live,
    nrs_policies,
    nrs_tbf_rule,
    page_pools,
    pcc,
    pools,
    quota,
    read_ahead_stats,
    recovery_status,
    rename_stats,
    rpc_stats,
    statahead_stats,
    stats,
    unstable_stats,
    version,
)
from lustre.formats.histogram import Histogram
from tests.conftest import Unpack
from tests.rules import every

Parse = Callable[[bytes], Any]

DEBUG = "sys/kernel/debug/lustre"
MOUNT = "ff1100011d6c9800"
FILES: dict[str, tuple[Parse, str]] = {
    "stats": (stats.parse, f"{DEBUG}/osc/lustre-OST0002-osc-{MOUNT}/stats"),
    "read_ahead_stats": (read_ahead_stats.parse, f"{DEBUG}/llite/lustre-{MOUNT}/read_ahead_stats"),
    "statahead_stats": (statahead_stats.parse, f"{DEBUG}/llite/lustre-{MOUNT}/statahead_stats"),
    "extents_stats": (extents_stats.parse, f"{DEBUG}/llite/lustre-{MOUNT}/extents_stats"),
    "max_cached_mb": (max_cached_mb.parse, f"{DEBUG}/llite/lustre-{MOUNT}/max_cached_mb"),
    "rpc_stats osc": (rpc_stats.parse, f"{DEBUG}/osc/lustre-OST0002-osc-{MOUNT}/rpc_stats"),
    "rpc_stats mdc": (rpc_stats.parse, f"{DEBUG}/mdc/lustre-MDT0001-mdc-{MOUNT}/rpc_stats"),
    "brw_stats": (brw_stats.parse, f"{DEBUG}/osd-ldiskfs/lustre-OST0002/brw_stats"),
    "import": (import_.parse, f"{DEBUG}/osc/lustre-OST0002-osc-{MOUNT}/import"),
    "changelog_users": (changelog_users.parse, f"{DEBUG}/mdd/lustre-MDT0000/changelog_users"),
    "recovery_status": (recovery_status.parse, f"{DEBUG}/obdfilter/lustre-OST0002/recovery_status"),
    "pools": (pools.parse, f"proc/fs/lustre/lov/lustre-clilov-{MOUNT}/pools/hdd"),
    "job_stats": (job_stats.parse, "proc/fs/lustre/obdfilter/lustre-OST0002/job_stats"),
    "io_latency_stats osc": (io_latency_stats.parse, f"{DEBUG}/osc/lustre-OST0002-osc-{MOUNT}/io_latency_stats"),
    "io_latency_stats osd": (io_latency_stats.parse, f"{DEBUG}/osd-ldiskfs/lustre-OST0002/io_latency_stats"),
    "rename_stats": (rename_stats.parse, f"{DEBUG}/mdt/lustre-MDT0000/rename_stats"),
    "nrs_policies": (nrs_policies.parse, f"{DEBUG}/ost/OSS/ost_io/nrs_policies"),
    "nrs_tbf_rule": (nrs_tbf_rule.parse, ""),
    "pcc": (pcc.parse, ""),
    "mgs live": (mgs_live.parse, f"{DEBUG}/mgs/MGS/live/lustre"),
    "lnet stats": (lnet.parse_stats, "sys/kernel/debug/lnet/stats"),
    "lnet nis": (lnet.parse_nis, "sys/kernel/debug/lnet/nis"),
    "lnet peers": (lnet.parse_peers, "sys/kernel/debug/lnet/peers"),
    "quota limits": (quota.parse_limits, "proc/fs/lustre/qmt/lustre-QMT0000/dt-0x0/glb-usr"),
    "quota accounts": (quota.parse_accounts, "proc/fs/lustre/osd-ldiskfs/lustre-OST0002/quota_slave_dt/acct_user"),
    "quota slave": (quota.parse_slave, "proc/fs/lustre/osd-ldiskfs/lustre-MDT0000/quota_slave_md/info"),
    "health_check": (health_check.parse, "sys/fs/lustre/health_check"),
    "version": (version.parse, "sys/fs/lustre/version"),
    "hsm agents": (hsm_agents.parse, ""),
    "batch_stats": (batch_stats.parse, f"{DEBUG}/mdc/lustre-MDT0000-mdc-{MOUNT}/batch_stats"),
    "encrypt_page_pools": (page_pools.parse, f"{DEBUG}/sptlrpc/encrypt_page_pools"),
    "page_pools": (page_pools.parse_by_size, ""),
    "oi_scrub": (lfsck.parse_oi_scrub, f"{DEBUG}/osd-ldiskfs/lustre-OST0002/oi_scrub"),
    "oi_scrub at work": (lfsck.parse_oi_scrub, ""),
    "lfsck_namespace": (lfsck.parse, f"{DEBUG}/mdd/lustre-MDT0000/lfsck_namespace"),
    "lfsck_layout": (lfsck.parse, f"{DEBUG}/obdfilter/lustre-OST0002/lfsck_layout"),
    "lfsck dry run": (lfsck.parse, ""),
    "unstable_stats": (unstable_stats.parse, f"{DEBUG}/llite/lustre-{MOUNT}/unstable_stats"),
    "lnet routes": (lnet.parse_routes, ""),
    "lnet buffers": (lnet.parse_buffers, ""),
}
HELPERS = {"fields", "header", "histogram", "df", "compiled", "opcodes", "outline", "rows"}
"""Parts of the others; ``df`` has tests below."""
WRITTEN = {
    # mdt_hsm_agent_debugfs_show, the same from 2.12.0 to 2.17: no copytool was running on the recorded node
    "hsm agents": b"uuid=ac6a5a5c-1c2d-4d43-a2a3-0e9a1e5a3f5e archive_id=ANY requests=[current:3 ok:1200 errors:4]\n"
    b"uuid=0b2f7e7e-8f6e-4f0e-9df0-6a8dd1d2a111 archive_id=1,2 requests=[current:0 ok:7 errors:0]\n",
    # recorded with Lustre 2.17.57, two CPTs made of one
    "nrs_tbf_rule": b"regular_requests:\nCPT 0:\ntierd_2 jobid={cp.1001 fio_rand.1001} 50, ref 0\n"
    b"bad jobid={a}b} 5, ref 0\ntierd_1 jobid={dd.0} 20, ref 1\ndefault * 10000, ref 0\nCPT 1:\n"
    b"tierd_1 jobid={dd.0} 20, ref 2\ndefault * 10000, ref 0\nhigh_priority_requests:\nCPT 0:\n"
    b"tierd_1 jobid={dd.0} 20, ref 0\ndefault * 10000, ref 0\n",
    # pcc_dataset_dump: the recorded node had no backend
    "pcc": b"pcc:\n  -\n    pccpath: /mnt/pcc\n    hsmtool: posix\n    rwid: 2\n    roid: 3\n    flags: 1b\n"
    b"    autocache: projid={500 1000}&fname={*.h5}\n  -\n    pccpath: /mnt/b\n    hsmtool: posix\n    rwid: 0\n"
    b"    roid: 4\n    flags: 2\n    autocache: uid={0}\n",
    # proc_lnet_routes and __proc_lnet_buffers: the recorded node was no router and had none
    "lnet routes": b"Routing disabled\nnet      hops priority   state router\n"
    b"o2ib1      -1        0      up 10.0.0.253@tcp\no2ib1       1        3    down 10.0.0.254@tcp\n",
    # page_pools_seq_show: the recorded node never used any
    "page_pools": b"physical_pages: 1516315\npools:\n  pool_4k:\n    max_objects: 108308\n    total_objects: 512\n"
    b"    total_free: 500\n    grows: 1\n    cache_access: 88\n    cache_missing: 1\n"
    b"  pool_64k:\n    max_objects: 6769\n    total_objects: 24\n    total_free: 7\n    out_of_mem: 0\n",
    # scrub_dump and lfsck_layout_dump: nothing was ever wrong with the recorded node
    "oi_scrub at work": b"name: OI_scrub\nmagic: 0x4c5fe253\noi_files: 64\nstatus: scanning\nflags: inconsistent,auto\n"
    b"param:\ntime_since_last_completed: 86405 seconds\ntime_since_latest_start: 62 seconds\nchecked: 1204413\n"
    b"updated: 17\nfailed: 3\nprior_updated: 2\nsuccess_count: 3\nrun_time: 57 seconds\nreal_time_speed: N/A\n",
    "lfsck dry run": b"name: lfsck_layout\nmagic: 0xb1732fed\nversion: 2\nstatus: scanning-phase2\n"
    b"flags: scanned-once,inconsistent\nparam: dryrun,all_targets\nlast_completed_time: N/A\n"
    b"latest_start_time: 1795210200\ntime_since_latest_start: 8276 seconds\nsuccess_count: 2\n"
    b"inconsistent_dangling: 5\ninconsistent_orphan: 7\nskipped: 0\nfailed_phase1: 4\nfailed_phase2: 1\n"
    b"checked_phase1: 48210\nchecked_phase2: 7\nrun_time_phase1: 580 seconds\nrun_time_phase2: 20 seconds\n"
    b"current_position: [0x200000402:0x1:0x0]\n",
    "lnet buffers": b"pages count credits     min\n    0   512     512     510\n  256   256      -2      -9\n",
}
"""What no recording has: written from Lustre's source."""
WORDS = (b"\n", b"\n\n", b" ", b"\t\t", b":", b"|", b"0", b"31", b"100", b"9" * 30, b"-4", b"4K", b"%", b"a", b"{")
LETTERS = st.binary(max_size=400) | st.lists(st.sampled_from(WORDS), max_size=60).map(b"".join)


def sample(capture: Unpack, name: str) -> bytes:
    if name in WRITTEN:
        return WRITTEN[name]
    data = (capture("2.17.57/tree-load-2") / FILES[name][1]).read_bytes()
    if name == "job_stats":
        return b"job_stats:\n" + b"".join(job_stats.split(data)[:2])
    return data


def facts(record: Any, at: str = "") -> dict[str, Any]:
    """Every number and text of a record by its position, to compare a cut file with the whole file."""
    if isinstance(record, stats.Stats | read_ahead_stats.ReadAhead | job_stats.Job):
        return columns(record, at)
    if isinstance(record, tuple) and record and dataclasses.is_dataclass(record[0]):
        named = ((getattr(item, "name", i), item) for i, item in enumerate(record))
        return {k: v for name, item in named for k, v in facts(item, f"{at}[{name}]").items()}
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        if isinstance(record, Histogram):
            return {at: record}
        fields = ((f.name, getattr(record, f.name)) for f in dataclasses.fields(record) if f.name != "skipped")
        return {k: v for name, value in fields for k, v in facts(value, f"{at}.{name}").items()}
    return {} if record in (None, b"", ()) else {at: record}


def columns(record: Any, at: str) -> dict[str, Any]:
    wide = [(f.name, getattr(record, f.name)) for f in dataclasses.fields(record) if f.name != "skipped"]
    found = {f"{at}.{n}": v for n, v in wide if isinstance(v, bytes) and v}
    for name, values in wide:
        if isinstance(values, tuple) and name != "histograms":
            found |= {f"{at}.{key!r}.{name}": value for key, value in zip(record.names, values, strict=True)}
        elif name == "histograms":
            found |= {f"{at}.{key!r}.{name}": value for key, value in values}
    return found


def test_no_parser_is_forgotten() -> None:
    modules = {file.stem for file in Path(stats.__file__).parent.glob("*.py")} - {"__init__"}
    assert modules - HELPERS == {parse.__module__.rpartition(".")[2] for parse, _ in FILES.values()}


def test_no_bytes_make_a_parser_raise(capture: Unpack) -> None:
    lines = {line for name in FILES for line in sample(capture, name).splitlines(keepends=True)}
    parts = sorted(lines | {part for line in lines for part in line.split()} | {*WORDS})

    @settings(max_examples=400)
    @given(data=LETTERS | st.lists(st.sampled_from(parts), max_size=60).map(b"".join))
    def raises_nothing(data: bytes) -> None:
        for name, (parse, _) in FILES.items():
            assert parse(data).skipped >= 0, name

    raises_nothing()


@every("name", FILES)
def test_binary_junk_is_skipped_and_nothing_is_nothing(name: str) -> None:
    parse, _ = FILES[name]
    junk = parse(bytes(range(1, 256)) * 3)
    assert junk.skipped > 0
    assert dataclasses.replace(junk, skipped=0) == parse(b"")


@every("name", FILES)
def test_a_real_file_is_understood_whole(name: str, capture: Unpack) -> None:
    record = FILES[name][0](sample(capture, name))
    assert record.skipped == 0
    assert facts(record)


@every("name", FILES)
def test_a_file_cut_at_any_byte_gives_no_wrong_number(name: str, capture: Unpack) -> None:
    data, parse = sample(capture, name), FILES[name][0]
    whole = facts(parse(data)).items()
    read = ((cut, fact) for cut in range(len(data)) for fact in facts(parse(data[:cut])).items())
    partial = [(cut, *fact) for cut, fact in read if fact not in whole]
    known = dict(whole)
    wrong = [(cut, key) for cut, key, value in partial if not prefix(value, known[key])]
    assert wrong == []


def prefix(part: Any, whole: Any) -> bool:
    """A list of whole lines so far; or a last table cut between two rows, before it shows that it is not all."""
    if isinstance(part, Histogram):
        rows = len(part.uppers)
        alike = part.uppers == whole.uppers[:rows] and part.columns == tuple(c[:rows] for c in whole.columns)
        return alike and (rows == 0 or not all(any(column) for column in part.columns))
    return isinstance(part, tuple) and part == whole[: len(part)]


def test_a_damaged_real_file_makes_no_parser_raise(capture: Unpack) -> None:
    samples = [(parse, sample(capture, name)) for name, (parse, _) in FILES.items()]

    @settings(max_examples=200)
    @given(where=st.integers(0, 10_000), what=st.binary(max_size=6))
    def damaged(where: int, what: bytes) -> None:
        for parse, data in samples:
            at = where % len(data)
            parse(data[:at] + what + data[at + len(what) :])

    damaged()


UNITS = (b" ", b"\n", b"a ", b"1", b"1: ", b"{", b"\t\t\tread\t\t\twrite\n", b"- job_id:\n", b'"\\x', b"samples [")


@every("name, unit", product(FILES, UNITS))
def test_time_grows_with_the_length_not_its_square(name: str, unit: bytes) -> None:
    parse = FILES[name][0]

    def seconds(length: int) -> float:
        data = unit * (length // len(unit))
        begin = time.process_time()
        parse(data)
        return time.process_time() - begin

    short = min(seconds(10_000) for _ in range(3))
    limit = 100 * max(short, 0.0005)  # 16 times for a straight line, 256 for a square
    assert any(seconds(160_000) < limit for _ in range(3))


@given(data=LETTERS)
def test_a_number_file_is_a_number_or_nothing(data: bytes) -> None:
    value = df.integer(data)
    assert value is None or data.strip().lstrip(b"-").lstrip(b"0").decode() in {str(abs(value)), ""}


@given(data=LETTERS)
def test_blocks_of_jobs_lose_nothing_but_the_cut_line(data: bytes) -> None:
    text = b"job_stats:\n- job_id:          a\n" + data
    assert b"job_stats:\n" + b"".join(job_stats.split(text)) == text[: text.rfind(b"\n") + 1]
