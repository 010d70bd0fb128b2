"""What holds for every parser: no bytes make it raise, a cut file gives no wrong number, time grows with length."""

import dataclasses
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustre.formats import df, job_stats, stats
from lustre.formats.histogram import Histogram
from tests.conftest import Unpack
from tests.exporter.written import files_of

DEBUG = "sys/kernel/debug/lustre"
MOUNT = "ff1100011d6c9800"
FILES = {
    "stats": ("stats", f"{DEBUG}/osc/lustre-OST0002-osc-{MOUNT}/stats"),
    "read_ahead_stats": ("read_ahead_stats", f"{DEBUG}/llite/lustre-{MOUNT}/read_ahead_stats"),
    "statahead_stats": ("statahead_stats", f"{DEBUG}/llite/lustre-{MOUNT}/statahead_stats"),
    "extents_stats": ("extents_stats", f"{DEBUG}/llite/lustre-{MOUNT}/extents_stats"),
    "max_cached_mb": ("max_cached_mb", f"{DEBUG}/llite/lustre-{MOUNT}/max_cached_mb"),
    "rpc_stats osc": ("rpc_stats", f"{DEBUG}/osc/lustre-OST0002-osc-{MOUNT}/rpc_stats"),
    "rpc_stats mdc": ("rpc_stats", f"{DEBUG}/mdc/lustre-MDT0001-mdc-{MOUNT}/rpc_stats"),
    "brw_stats": ("brw_stats", f"{DEBUG}/osd-ldiskfs/lustre-OST0002/brw_stats"),
    "import": ("import_", f"{DEBUG}/osc/lustre-OST0002-osc-{MOUNT}/import"),
    "changelog_users": ("changelog_users", f"{DEBUG}/mdd/lustre-MDT0000/changelog_users"),
    "recovery_status": ("recovery_status", f"{DEBUG}/obdfilter/lustre-OST0002/recovery_status"),
    "pools": ("pools", f"proc/fs/lustre/lov/lustre-clilov-{MOUNT}/pools/hdd"),
    "job_stats": ("job_stats", "proc/fs/lustre/obdfilter/lustre-OST0002/job_stats"),
    "io_latency_stats osc": ("io_latency_stats", f"{DEBUG}/osc/lustre-OST0002-osc-{MOUNT}/io_latency_stats"),
    "io_latency_stats osd": ("io_latency_stats", f"{DEBUG}/osd-ldiskfs/lustre-OST0002/io_latency_stats"),
    "rename_stats": ("rename_stats", f"{DEBUG}/mdt/lustre-MDT0000/rename_stats"),
    "nrs_policies": ("nrs_policies", f"{DEBUG}/ost/OSS/ost_io/nrs_policies"),
    "nrs_tbf_rule": ("nrs_tbf_rule", ""),
    "pcc": ("pcc", ""),
    "mgs live": ("mgs_live", f"{DEBUG}/mgs/MGS/live/lustre"),
    "lnet stats": ("lnet.parse_stats", "sys/kernel/debug/lnet/stats"),
    "lnet nis": ("lnet.parse_nis", "sys/kernel/debug/lnet/nis"),
    "lnet peers": ("lnet.parse_peers", "sys/kernel/debug/lnet/peers"),
    "quota limits": ("quota.parse_limits", "proc/fs/lustre/qmt/lustre-QMT0000/dt-0x0/glb-usr"),
    "quota accounts": ("quota.parse_accounts", "proc/fs/lustre/osd-ldiskfs/lustre-OST0002/quota_slave_dt/acct_user"),
    "quota slave": ("quota.parse_slave", "proc/fs/lustre/osd-ldiskfs/lustre-MDT0000/quota_slave_md/info"),
    "health_check": ("health_check", "sys/fs/lustre/health_check"),
    "version": ("version", "sys/fs/lustre/version"),
    "hsm agents": ("hsm_agents", ""),
    "batch_stats": ("batch_stats", f"{DEBUG}/mdc/lustre-MDT0000-mdc-{MOUNT}/batch_stats"),
    "encrypt_page_pools": ("page_pools", f"{DEBUG}/sptlrpc/encrypt_page_pools"),
    "page_pools": ("page_pools.parse_by_size", ""),
    "oi_scrub": ("lfsck.parse_oi_scrub", f"{DEBUG}/osd-ldiskfs/lustre-OST0002/oi_scrub"),
    "oi_scrub at work": ("lfsck.parse_oi_scrub", ""),
    "lfsck_namespace": ("lfsck", f"{DEBUG}/mdd/lustre-MDT0000/lfsck_namespace"),
    "lfsck_layout": ("lfsck", f"{DEBUG}/obdfilter/lustre-OST0002/lfsck_layout"),
    "lfsck dry run": ("lfsck", ""),
    "unstable_stats": ("unstable_stats", f"{DEBUG}/llite/lustre-{MOUNT}/unstable_stats"),
    "lnet routes": ("lnet.parse_routes", ""),
    "lnet buffers": ("lnet.parse_buffers", ""),
}
"""Module and, unless it is ``parse``, function; and where a recorded node has the file."""
PARSERS = {name: getattr(import_module(f"lustre.formats.{of.partition('.')[0]}"), of.partition(".")[2] or "parse")
           for name, (of, _) in FILES.items()}
HELPERS = {"fields", "header", "histogram", "df", "compiled", "opcodes", "outline", "rows"}
"""Parts of the others; ``df`` has tests below."""
WRITTEN = {
    "hsm agents": ("2.15", "mds", "work-MDT0000/hsm/agents"),
    "nrs_tbf_rule": ("2.17", "seldom", "ost_io/nrs_tbf_rule"),
    "pcc": ("2.17", "seldom", "/pcc"),
    "lnet routes": ("2.15", "client", "lnet/routes"),
    "lnet buffers": ("2.15", "router", "lnet/buffers"),
    "page_pools": ("2.17", "seldom", "sptlrpc/page_pools"),
    "oi_scrub at work": ("2.17", "seldom", "/oi_scrub"),
    "lfsck dry run": ("2.17", "seldom", "/lfsck_namespace"),
}
"""What no recording has: release and role of a node that was written from Lustre's source, and the end of the path."""
WORDS = (b"\n", b"\n\n", b" ", b"\t\t", b":", b"|", b"0", b"31", b"100", b"9" * 30, b"-4", b"4K", b"%", b"a", b"{")
LETTERS = st.binary(max_size=400) | st.lists(st.sampled_from(WORDS), max_size=60).map(b"".join)


def sample(capture: Unpack, name: str) -> bytes:
    if name in WRITTEN:
        release, role, end = WRITTEN[name]
        return next(text for path, text in files_of(release, role) if path.endswith(end)).encode()
    data = (capture("2.17.57/tree-load-2") / FILES[name][1]).read_bytes()
    if name == "job_stats":
        return b"job_stats:\n" + b"".join(job_stats.split(data)[:2])
    return data


def facts(record: Any, at: str = "") -> dict[str, Any]:
    """Every number and text of a record by its position, to compare a cut file with the whole file."""
    if isinstance(record, stats.Stats | job_stats.Job):
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
    entered = {of.partition(".")[0] for of, _ in FILES.values()}
    assert modules - HELPERS == entered, "enter it in FILES, and in WRITTEN if no recording has the file"


def test_no_bytes_make_a_parser_raise(capture: Unpack) -> None:
    lines = {line for name in FILES for line in sample(capture, name).splitlines(keepends=True)}
    parts = sorted(lines | {part for line in lines for part in line.split()} | {*WORDS})

    @settings(max_examples=200)
    @given(data=LETTERS | st.lists(st.sampled_from(parts), max_size=60).map(b"".join))
    def raises_nothing(data: bytes) -> None:
        for name, parse in PARSERS.items():
            assert parse(data).skipped >= 0, name

    raises_nothing()


@pytest.mark.parametrize("name", FILES)
def test_binary_junk_is_skipped_and_nothing_is_nothing(name: str) -> None:
    parse = PARSERS[name]
    junk = parse(bytes(range(1, 256)) * 3)
    assert junk.skipped > 0
    assert dataclasses.replace(junk, skipped=0) == parse(b"")


@pytest.mark.parametrize("name", FILES)
def test_a_real_file_is_understood_whole(name: str, capture: Unpack) -> None:
    record = PARSERS[name](sample(capture, name))
    assert record.skipped == 0
    assert facts(record)


@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_at_any_byte_gives_no_wrong_number(name: str, capture: Unpack) -> None:
    data, parse = sample(capture, name), PARSERS[name]
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


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("unit", [
    b" ", b"\n", b"a ", b"1", b"1: ", b"{", b"\t\t\tread\t\t\twrite\n", b"- job_id:\n", b'"\\x', b"samples ["])
def test_time_grows_with_the_length_not_its_square(name: str, unit: bytes) -> None:
    parse = PARSERS[name]

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
