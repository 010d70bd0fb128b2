"""Files that are cut, empty, binary, unreadable or hang: the rest is served, and what is missing is counted."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from exporter.jobs.texts import MAX_JOB_BYTES
from tests.exporter.written import files_of

OSC = "sys/kernel/debug/lustre/osc"
FIRST = f"{OSC}/lustre-OST0000-osc-ff1100011d6c9800"
STATS = b"snapshot_time 9.5 secs.nsecs\nstart_time 5.0 secs.nsecs\nelapsed_time 1.0 secs.nsecs\n"
KINDS = ["stats", "rpc_stats", "import"]


@pytest.fixture
def tree(capture, tmp_path) -> Path:
    """A copy that tests may damage."""
    root = tmp_path / "tree"
    unread = shutil.ignore_patterns("ldlm", "exports", "osd-*", "lwp", "seq", "fld", "mdd", "mds", "ost", "mgs", "qmt")
    shutil.copytree(capture("2.17.57/tree-load-1"), root, symlinks=True, ignore=unread)
    return root


def overwrite(path: Path, data: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(data)


def families_of(text: bytes, samples) -> set[str]:
    return {name for name, _ in samples(text)}


@pytest.mark.parametrize("per_target", [False, True])
def test_one_damaged_file_costs_its_own_samples_only(tree, exporter, samples, per_target) -> None:
    before = families_of(exporter(tree, osc_per_target=per_target).scrape("osc", "llite"), samples)
    for name in KINDS:
        whole = (tree / FIRST / name).read_bytes()
        for data in (b"", b"\x00\xff\xfe\x80" * 500, b"\n\n\n", b"a" * 5000):
            overwrite(tree / FIRST / name, data)
            running = exporter(tree, osc_per_target=per_target)
            assert families_of(running.scrape("osc", "llite"), samples) == before, (name, data)
            assert running.reasons() == {}, (name, data)
            noticed = running.errors().get((f"osc.*.{name}", "empty"), 0) + running.skipped().get(f"osc.*.{name}", 0)
            assert noticed or data.isspace(), (name, data)
        overwrite(tree / FIRST / name, whole)


def test_unreadable_files_are_counted_by_their_error(tree, exporter) -> None:
    for name in KINDS:
        (tree / FIRST / name).unlink()
        (tree / FIRST / name).mkdir()
    running = exporter(tree)
    assert b"lustre_osc_requests_total" in running.scrape()
    assert running.errors() == {(f"osc.*.{name}", "EISDIR"): 1 for name in KINDS}


@pytest.mark.parametrize("begin", [b"", b"job_stats:\n- job_id:          "], ids=["no job", "a job without an end"])
@pytest.mark.parametrize("limit", [0, 5])
def test_a_file_that_cannot_hold_jobs_is_abandoned_early(tree, exporter, begin, limit) -> None:
    place = "proc/fs/lustre/obdfilter/lustre-OST000{}/job_stats"
    overwrite(tree / place.format(1), begin + b"x" * (3 * MAX_JOB_BYTES))
    running = exporter(tree, jobs_limit=limit)
    for reading in (1, 2):  # in one piece, then in many
        shown = running.scrape("jobs")
        assert b'lustre_jobs{fs="lustre",target="OST0002"}' in shown
        assert b'lustre_jobs{fs="lustre",target="OST0001"}' not in shown
        assert running.errors() == {("obdfilter.*.job_stats", "EBADMSG"): reading}


def test_a_target_that_vanishes_is_absent_and_no_error(tree, exporter) -> None:
    running = exporter(tree, osc_per_target=True)
    assert b'target="OST0000"' in running.scrape("osc")
    shutil.rmtree(tree / FIRST)
    shutil.rmtree(tree / FIRST.replace("sys/kernel/debug/lustre", "sys/fs/lustre"))
    assert b'target="OST0000"' not in running.scrape("osc")
    assert running.errors() == {}
    assert running.reasons() == {}


DISK_IOS = b"""\
snapshot_time:         1795218508.746199856 secs.nsecs

                           read      |     write
disk I/Os in flight        ios   %% cum %% |  ios         %% cum %%
%b:                  2 100 100   |    3 100 100
"""


@pytest.mark.parametrize(("label", "buckets"), [(b"5", 31), (b"64", 8), (b"2147483648", 33), (b"2147483649", 0)])
def test_a_bucket_beyond_the_kernels_last_costs_no_memory(grow, exporter, label, buckets) -> None:
    running = exporter(grow({"sys/kernel/debug/lustre/osd-ldiskfs/lustre-OST0000/brw_stats": DISK_IOS % label}))
    shown = running.scrape("osd")
    assert running.reasons() == {}
    assert shown.count(b'lustre_osd_io_in_flight_bucket{') == 2 * buckets
    assert bool(running.skipped()) == (not buckets)


def test_sums_that_wrapped_or_ran_into_the_end_are_left_out(grow, exporter, samples) -> None:
    root = grow({
        "sys/kernel/debug/lustre/obdfilter/lustre-OST0000/stats": STATS
        + b"read_bytes 5 samples [bytes] 1 1 -17 1\nread 5 samples [usecs] 1 1 9223372036854775807 1\n"
        b"write 6 samples [usecs] 1 1 18446744073709551 -1\n"
    })  # fmt: skip
    running = exporter(root)
    shown = {(name, dict(k).get("operation")): value for (name, k), value in samples(running.scrape()).items()}
    assert shown == {
        ("lustre_ost_operations_total", "read"): "5",
        ("lustre_ost_operations_total", "write"): "6",
        ("lustre_ost_operation_seconds_total", "write"): "18446744073.709551",
    }
    assert running.skipped() == {"obdfilter.*.stats": 2}


@pytest.mark.parametrize("role", [("2.16", "client"), ("2.16", "oss"), ("2.16", "mds"), ("2.17", "seldom")], ids=str)
@pytest.mark.parametrize("repeat", [lambda text: text + text,
                                    lambda text: "".join([2 * line for line in text.splitlines(keepends=True)])],
                         ids=["text", "lines"])
def test_texts_that_repeat_themselves_repeat_no_series(grow, exporter, samples, role, repeat) -> None:
    running = exporter(grow({path: repeat(text) for path, text in files_of(*role)}))
    samples(running.scrape())
    assert running.reasons() == {}


def test_hostile_names_are_escaped(grow, exporter, samples) -> None:
    fs = 'a"b\\c%d{}\u2028é'
    root = grow({
        f"sys/kernel/debug/lustre/obdfilter/{fs}-OST0000/stats": STATS + b'x"\\%s 5 samples [usecs] 1 1 7 1\n',
        f"proc/fs/lustre/obdfilter/{fs}-OST0000/job_stats": "job_stats:\n- job_id:          %b%s%%\n"
        "  read_bytes:      { samples: 1, unit: bytes, min: 1, max: 1, sum: 1 }\n",
    })  # fmt: skip
    text = exporter(root).scrape()
    operations = {dict(labels)["operation"] for name, labels in samples(text) if name == "lustre_ost_operations_total"}
    assert operations == {'x"\\%s'}
    assert {dict(labels)["fs"] for _, labels in samples(text)} == {fs}
    assert {dict(labels)["jobid"] for name, labels in samples(text) if "_job_" in name} == {"%b%s%%"}
    assert len(list(text_string_to_metric_families(text.decode()))) > 0


OF_NODES = [
    *[f"sys/fs/lustre/{name}" for name in ("version", "health_check", "memused", "ldlm/lock_granted_count")],
    *[f"sys/kernel/debug/lnet/{name}" for name in ("stats", "nis", "peers", "lnet_memused")],
    *[f"sys/fs/lustre/ldlm/namespaces/filter-lustre-OST0000_UUID/{name}" for name in ("lock_count", "pool/stats")],
    *[f"sys/kernel/debug/lustre/ost/OSS/ost_io/{name}" for name in ("stats", "nrs_policies", "threads_max")],
    *[f"sys/kernel/debug/lustre/osd-ldiskfs/lustre-OST0000/{name}" for name in ("brw_stats", "stats",
                                                                                "io_latency_stats")],
    f"{OSC}/lustre-OST0000-osc-ffff9f0a8c3d1800/io_latency_stats",
    "sys/kernel/debug/lustre/obdfilter/lustre-OST0000/recovery_status",
    "sys/kernel/debug/lustre/obdfilter/lustre-OST0000/exports/10.0.0.1@tcp/stats",
    *[f"sys/kernel/debug/lustre/mdt/lustre-MDT0000/{name}" for name in ("rename_stats", "hsm_control", "hsm/agents")],
    "sys/kernel/debug/lustre/mdd/lustre-MDT0000/changelog_users",
    *[f"sys/fs/lustre/osp/lustre-OST0000-osc-MDT0000/prealloc_{name}" for name in ("status", "last_id", "next_id")],
    *[f"sys/fs/lustre/lod/lustre-MDT0000-mdtlov/{name}" for name in ("numobd", "qos_prio_free")],
    "proc/fs/lustre/qmt/lustre-QMT0000/dt-0x0/glb-usr",
    "proc/fs/lustre/osd-ldiskfs/lustre-OST0000/quota_slave/acct_user",
    *[f"sys/kernel/debug/lustre/nodemap/{name}" for name in ("active", "default/dt_stats", "default/admin_nodemap")],
    *[f"sys/kernel/debug/lustre/mgs/MGS/{name}" for name in ("live/lustre", "num_exports")],
]  # fmt: skip
"""A parameter of every form that servers and the node as a whole have."""


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_no_bytes_at_all_spoil_a_scrape(grow, exporter, data) -> None:
    root = grow({
        **{f"{OSC}/lustre-OST0000-osc-ffff9f0a8c3d1800/{name}": data for name in KINDS},
        **{f"sys/fs/lustre/osc/lustre-OST0000-osc-ffff9f0a8c3d1800/{name}": data for name in ("kbytesfree", "active")},
        "proc/fs/lustre/lov/lustre-clilov-ffff9f0a8c3d1800/pools/flash": data,
        "proc/fs/lustre/obdfilter/lustre-OST0000/job_stats": data,
        "proc/fs/lustre/llite/lustre-ffff9f0a8c3d1800/stats": data,
        "proc/fs/lustre/llite/lustre-ffff9f0a8c3d1800/read_ahead_stats": data,
        "proc/fs/lustre/llite/lustre-ffff9f0a8c3d1800/max_read_ahead_mb": data,
        "proc/mounts": data,
        **dict.fromkeys(OF_NODES, data),
    })  # fmt: skip
    for options in ({}, {"osc_per_target": True}, {"jobs_limit": 1}):
        running = exporter(root, **options)
        list(text_string_to_metric_families(running.scrape().decode()))
        assert running.reasons() == {}
