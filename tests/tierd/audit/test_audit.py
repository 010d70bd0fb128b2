"""The settings of a node against the papers: on a recorded tree, and on nodes that differ from it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.parameters import Roots
from tests.conftest import Unpack
from tierd.audit.checks import CHECKS, Line, State, audit
from tierd.audit.node import Node, read_node
from tierd.cli import tierctl


def rpcs(title: str, *rows: int) -> str:
    """``rpc_stats`` with all RPCs in the last row of one table."""
    zeros = "".join(f"{row}:\t\t         0   0   0   |          0   0   0\n" for row in rows[:-1])
    return (f"snapshot_time:            1795218508.746199856 secs.nsecs\n\n\t\t\tread\t\t\twrite\n"
            f"{title:22}rpcs   % cum % |       rpcs   % cum %\n{zeros}"
            f"{rows[-1]}:\t\t       900 100 100   |        100 100 100")


@pytest.fixture
def node_root(capture: Unpack) -> Path:
    """A recorded tree of a node that is client and server."""
    return capture("2.17.57/tree-load-1")


@pytest.fixture
def recorded(node_root: Path) -> Node:
    return read_node(Roots.of(node_root / "proc", node_root / "sys"))


def the(node: Node, check: str) -> Line:
    (line,) = (line for line in audit(node) if line.check == check)
    return line


def changed(node: Node, **texts: str) -> Node:
    """The node with other texts on all devices: ``llite__statahead_max="0"``."""
    beside = {"osc.rpc_stats": "max_pages_per_rpc", "llite.read_ahead_stats": "max_read_ahead_mb"}
    parameters = {**node.parameters}
    for name, text in texts.items():
        key = name.replace("__", ".")
        devices = node.parameters.get(key) or node.parameters[f"{key.partition('.')[0]}.{beside[key]}"]
        parameters[key] = dict.fromkeys(devices, text)
    return replace(node, parameters=parameters)


def test_a_recorded_node_of_lustre_2_17(recorded: Node) -> None:
    assert recorded.version[:2] == (2, 17)
    assert recorded.server
    assert set(recorded.numbers("obdfilter.brw_size").values()) == {4}
    assert len(recorded.numbers("osc.max_pages_per_rpc")) == 6, "the connections of MDTs do not count"
    assert {line.check: line.state for line in audit(recorded)} == {
        "client-rpc-size": State.OK, "client-rpcs-in-flight": State.NOTE, "read-ahead-budget": State.NOTE,
        "statahead": State.OK, "server-rpc-size": State.NOTE, "job-ids": State.OK}
    assert the(recorded, "server-rpc-size").setting == "obdfilter.lustre-*.brw_size = 4 MiB"
    assert the(recorded, "read-ahead-budget").command == "lctl set_param -P llite.lustre-*.max_read_ahead_mb=1024"


def test_larger_rpcs_are_advised_if_most_are_full(recorded: Node) -> None:
    full = rpcs("pages per rpc", *(1 << n for n in range(9)))
    small = changed(recorded, osc__max_pages_per_rpc="256", osc__rpc_stats=full)
    line = the(small, "client-rpc-size")
    assert (line.state, line.command) == (State.ADVICE, "lctl set_param -P osc.lustre-*.max_pages_per_rpc=1024")
    assert "at most 1 MiB; the servers accept 4 MiB. 100% of the RPCs" in line.why


def test_rpcs_that_wait_at_the_limit_are_advice(recorded: Node) -> None:
    table = rpcs("rpcs in flight", *range(9))
    assert the(changed(recorded, osc__rpc_stats=table), "client-rpcs-in-flight").state is State.ADVICE
    assert the(changed(recorded, osc__max_rpcs_in_flight="32"), "client-rpcs-in-flight").state is State.OK


def test_a_read_ahead_limit_that_is_reached_is_advice(recorded: Node) -> None:
    counts = ("snapshot_time 9.5 secs.nsecs\nhits 100 samples [pages]\nmisses 1000 samples [pages]\n"
              "hit_max_readahead_issue 200 samples [pages]")
    assert the(changed(recorded, llite__read_ahead_stats=counts), "read-ahead-budget").state is State.ADVICE
    small = replace(recorded, memory_bytes=512 << 20)
    assert the(changed(small, llite__max_read_ahead_mb="256"), "read-ahead-budget").state is State.OK


@pytest.mark.parametrize(("release", "state"), [
    ("2.12.9", State.ADVICE), ("2.13.57", State.ADVICE), ("2.14.0", State.OK), ("", State.UNKNOWN)])
def test_strides_need_a_newer_release(recorded: Node, release: str, state: State) -> None:
    counts = ("snapshot_time 9.5 secs.nsecs\nhits 900 samples [pages]\nmisses 9100 samples [pages]\n"
              "readpage_not_consecutive 9000 samples [pages]")
    node = replace(changed(recorded, llite__read_ahead_stats=counts), release=release)
    line = the(node, "strided-reads")
    assert line.state is state
    assert "9% of 10000 pages" in line.why


def test_batched_statahead(recorded: Node) -> None:
    good = "statahead total: 42\nhit_total: 27080\nmiss_total: 105"
    poor = "statahead total: 42\nhit_total: 105\nmiss_total: 27080"
    for stats, state in ((good, State.ADVICE), (poor, State.OK), ("statahead total: 1", State.NOTE)):
        off = changed(recorded, llite__statahead_batch_max="0", llite__statahead_stats=stats)
        assert the(off, "statahead").state is state, stats
    before = replace(recorded, release="2.12.9", kernel="3.10.0-957.el7.x86_64", parameters={
        name: texts for name, texts in recorded.parameters.items() if name != "llite.statahead_batch_max"})
    line = the(before, "statahead")
    assert line.state is State.NOTE
    assert "it came with 2.16." in line.why
    assert "Kernel 3.10.0-957.el7.x86_64 looks names up one at a time" in line.why
    assert the(changed(recorded, llite__statahead_max="0"), "statahead").state is State.ADVICE


def test_the_omni_path_driver(node_root: Path, tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    (tmp_path / "sys" / "fs").symlink_to(node_root / "sys" / "fs")
    folder = tmp_path / "sys" / "module" / "hfi1" / "parameters"
    folder.mkdir(parents=True)
    for name, text in {"krcvqs": "8,0,0", "piothreshold": "256", "sge_copy_mode": "2"}.items():
        (folder / name).write_text(text + "\n")
    node = read_node(Roots.of(node_root / "proc", tmp_path / "sys"))
    lines = {line.setting: line.state for line in audit(node) if line.check == "omni-path"}
    assert lines == {
        "hfi1 krcvqs = 8,0,0": State.OK, "hfi1 piothreshold = 256": State.NOTE, "hfi1 sge_copy_mode = 2": State.OK,
        "hfi1 wss_threshold = not in this driver": State.UNKNOWN}
    client = [line.setting for line in audit(replace(node, server=False)) if line.check == "omni-path"]
    assert client == ["hfi1 krcvqs = 8,0,0", "hfi1 cap_mask = not in this driver"]


def test_a_client_without_job_ids(recorded: Node) -> None:
    assert the(replace(recorded, jobid_var="disable"), "job-ids").state is State.ADVICE
    assert the(replace(recorded, jobid_var=""), "job-ids").state is State.UNKNOWN


def test_every_line_stands_alone(recorded: Node) -> None:
    for line in audit(recorded):
        assert line.setting
        assert line.source
        assert line.why.endswith(".")
        assert (line.state is State.OK or line.state is State.UNKNOWN) == (not line.command), line


TEXTS = st.one_of(st.text(max_size=40),
                  st.sampled_from(["0", "8", "18446744073709551615", "-1", "1e9", "pages per rpc"]))


@given(st.dictionaries(st.sampled_from(
    ["osc.max_pages_per_rpc", "osc.max_rpcs_in_flight", "osc.rpc_stats", "osc.import", "llite.max_read_ahead_mb",
     "llite.read_ahead_stats", "llite.statahead_max", "llite.statahead_batch_max",
     "llite.statahead_stats", "obdfilter.brw_size", "osd-ldiskfs.brw_stats"]),
    st.dictionaries(st.sampled_from(["lustre-OST0000-osc-ff1100011d6c9800", "lustre-OST0001", "x", "lustre-ff11"]),
                    TEXTS)), TEXTS, TEXTS)
def test_no_text_of_a_kernel_ends_the_audit(parameters: dict[str, dict[str, str]], release: str, driver: str) -> None:
    node = Node(True, release, release, False, 0, 4096, driver, parameters, {"krcvqs": driver})
    assert all(isinstance(line, Line) for check in CHECKS for line in check(node))


def test_the_command(node_root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roots = ["--path.procfs", str(node_root / "proc"), "--path.sysfs", str(node_root / "sys")]
    assert tierctl.main(["audit", *roots]) == 0
    printed = capsys.readouterr().out
    assert "NOTE    obdfilter.lustre-*.brw_size = 4 MiB\n        advised: 16 MiB (" in printed
    assert "set_param -P obdfilter.lustre-*.brw_size=16  (on the MGS)" in printed
    assert "6 settings compared: 0 advice, 3 note, 3 ok, 0 unknown (--all shows them)" in printed
    assert "jobid_var" not in printed
    assert tierctl.main(["audit", "--json", *roots]) == 0
    assert {line["check"] for line in json.loads(capsys.readouterr().out)} >= {"job-ids", "server-rpc-size"}
    assert tierctl.main(["audit", "--path.procfs", str(tmp_path), "--path.sysfs", str(tmp_path)]) == 1
    assert "Lustre is not loaded" in capsys.readouterr().err
