"""Texts that have not changed are not processed again: what a pass shows is what a first pass would show."""

import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporter.node import Node, NodeMemory, NodeSnapshot
from exporter.reading import ReadStats, Texts, natural
from lustre import parameters
from lustre.parameters import Roots, Tree, read_line
from tests.damaged import damage, damaged, renumbered, renumbering

KIND = "osc"
FOLDERS = ("sys/fs/lustre/osc", "sys/kernel/debug/lustre/osc")
NAMES = ("osc", "mdc", "llite", "osc_latency")
step = st.tuples(
    st.integers(0, 3),
    st.sampled_from(["stats", "rpc_stats", "import", "cur_grant_bytes", "cur_dirty_bytes", "max_rpcs_in_flight"]),
    st.sampled_from(["renumber", "damage", "empty", "restore", "remount", "nothing"]),
    damage,
    renumbering,
)


@pytest.fixture(scope="module")
def client(capture, tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("client") / "tree"
    unread = shutil.ignore_patterns("ldlm", "obdfilter", "osd-*", "md[dst]", "ost", "mg[cs]", "qmt", "osp", "lod",
                                    "lwp", "seq", "fld", "nodemap", "lnet", "*-OST000[45]-*")
    shutil.copytree(capture("2.17.57/tree-load-1"), root, symlinks=True, ignore=unread)
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755)
    return root


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(step, min_size=1, max_size=12))
def test_every_pass_shows_what_a_first_pass_shows(client, exporter, tmp_path_factory, steps) -> None:
    root = tmp_path_factory.mktemp("changed") / "tree"
    shutil.copytree(client, root, symlinks=True)
    running = exporter(root, osc_per_target=True)
    running.scrape(*NAMES)
    for number, (target, name, action, what, numbers) in enumerate(steps):
        device = f"lustre-OST000{target}-osc-ff1100011d6c9800"
        for folder in FOLDERS:
            place, whole = root / folder / device, client / folder / device
            if action == "remount":
                shutil.rmtree(place, ignore_errors=True)
                if number % 2:
                    shutil.copytree(whole, place)
            elif (place / name).exists():
                texts = {"renumber": renumbered((place / name).read_bytes(), numbers, 2), "empty": b"",
                         "damage": damaged((place / name).read_bytes(), *what),
                         "restore": (whole / name).read_bytes()}  # fmt: skip
                (place / name).write_bytes(texts.get(action, (place / name).read_bytes()))
                stats = place / "stats"
                if name == "rpc_stats" and stats.exists():  # each bulk RPC is counted there
                    count = number + 1
                    stats.write_text(f"snapshot_time 9.5 secs.nsecs\nread_bytes {count} samples [bytes] 1 1 {count}\n")
        assert running.scrape(*NAMES) == exporter(root, osc_per_target=True).scrape(*NAMES)
    shutil.rmtree(root)


def node_of(root: Path) -> Node:
    tree = Tree(Roots.of(root / "proc", root / "sys"))
    return Node(NodeSnapshot(NodeMemory(tree)), ReadStats())


def test_a_text_that_could_not_be_processed_is_returned_in_the_next_pass(grow) -> None:
    root = grow({"sys/fs/lustre/osc/a/stats": "read 1\n", "sys/fs/lustre/osc/b/stats": "read 2\n"})
    node, texts = node_of(root), Texts(KIND, "stats")
    texts.set_devices(["a", "b"])
    for position, _ in node.changed(texts):
        if position == 1:
            break  # as an exception does
    assert dict(node.changed(texts)) == {1: b"read 2\n"}


def test_lines_that_do_not_count_may_change_but_unknown_texts_count_whole(grow) -> None:
    place = "sys/fs/lustre/osc/a/import"
    node = node_of(grow({place: "import:\n    state: FULL\n    inflight: 1\n    idle: 1\n"}))
    texts = Texts(KIND, "import", (b"\n    state: ", b"\n    inflight: "))
    texts.set_devices(["a"])
    assert len([*node.changed(texts)]) == 1
    for text, changed in (
        ("import:\n    state: FULL\n    inflight: 1\n    idle: 2\n", False),
        ("import:\n    state: FULL\n    inflight: 2\n    idle: 2\n", True),
        ("import:\n    state: IDLE\n    inflight: 2\n    idle: 2\n", True),
        ("import:\n    state: IDLE\n    idle: 2\n", True),
        ("import:\n    state: IDLE\n    idle: 3\n", True),
    ):
        grow({place: text})
        assert len([*node.changed(texts)]) == changed


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(st.binary(max_size=30), st.from_regex(rb"[ ]?-?[0-9]{1,21}[ ]?\n?\n?", fullmatch=True)))
def test_numbers_are_those_of_the_single_reader(grow, data) -> None:
    root = grow({"sys/fs/lustre/osc/a/x": data, "sys/fs/lustre/osc/a/y": "7\n", "sys/fs/lustre/osc/b/y": "8\n"})
    node = node_of(root)
    read = read_line(root / "sys/fs/lustre/osc/a/x")
    for _ in range(2):
        x, y = node.numbers_of(KIND, ("x", "y"), ["a", "b", "gone"])
        assert x == [natural(read) if read else None, None, None]
        assert y == [7, 8, None]


def test_numbers_whose_files_are_in_different_folders(grow) -> None:
    root = grow({"sys/fs/lustre/osc/a/x": "1\n", "sys/fs/lustre/osc/b/x": "2\n",
                 "sys/kernel/debug/lustre/osc/a/y": "3\n", "proc/fs/lustre/osc/b/y": "4\n"})  # fmt: skip
    assert node_of(root).numbers_of(KIND, ("x", "y", "z"), ["a", "b"]) == [[1, 2], [3, 4], [None, None]]


def test_numbers_of_a_client_that_vanish_and_return(grow, exporter) -> None:
    place = "sys/fs/lustre/mdc/lustre-MDT0000-mdc-ff1100011d6c9800/max_rpcs_in_flight"
    running = exporter(grow({place: "8\n", "proc/mounts": "m@tcp:/lustre /mnt lustre rw 0 0\n"}))
    for text, shown in (("8\n", True), ("", False), ("x\n", False), ("9\n", True)):
        grow({place: text})
        assert (b"lustre_mdc_max_rpcs_in_flight{" in running.scrape("mdc")) == shown
        assert running.reasons() == {}


def test_a_file_that_another_collector_misses_first_has_no_series_any_more(grow, exporter) -> None:
    device = "fs/lustre/osc/lustre-OST0000-osc-ff1100011d6c9800"
    place = f"proc/{device}/import"  # as 2.14 has it, with most parameters in sysfs
    running = exporter(grow({place: "import:\n    state: FULL\n", f"sys/{device}/max_rpcs_in_flight": "8\n",
                             "proc/mounts": "m@tcp:/lustre /mnt lustre rw 0 0\n"}), osc_per_target=True)  # fmt: skip
    assert b'state="FULL"' in running.scrape("filesystem", "osc")
    grow({place: None})
    for _ in range(12):
        assert b'state="FULL"' not in running.scrape("filesystem", "osc")


@pytest.mark.skipif(parameters.read_many is None, reason="the modules in C were not built")
def test_the_c_module_refuses_wrong_arguments(tmp_path) -> None:
    read_many, read_numbers = parameters.read_many, parameters.read_numbers
    assert read_many is not None
    assert read_numbers is not None
    here, progress = str(tmp_path), bytearray(8)
    for wrong in (
        lambda: read_many(here, ["a"], "x", (), bytes(7), bytes(1), progress),
        lambda: read_many(here, ["a"], "x", (), bytes(8), bytes(2), progress),
        lambda: read_many(here, ["a"], "x", (), bytes(8), bytes(1), bytearray(7)),
        lambda: read_many(here, ["a\0b"], "x", None, b"", bytes(1), progress),
        lambda: read_many(here, ["a" * 600], "x", None, b"", bytes(1), progress),
        lambda: read_numbers(here, ["a"], ("x",) * 17, bytes(1), progress),
        lambda: read_numbers(here, ["a"], ("x",), b"", progress),
    ):
        with pytest.raises(ValueError, match=r"name|byte"):
            wrong()
    for wrong in (
        lambda: read_many(here, ["a"], "x", [], bytes(8), bytes(1), progress),  # type: ignore[arg-type]
        lambda: read_many(here, ["a"], "x", (1,), bytes(8), bytes(1), progress),  # type: ignore[arg-type]
        lambda: read_many(here, [1], "x", (), bytes(8), bytes(1), progress),  # type: ignore[list-item]
        lambda: read_numbers(here, ["a"], (1,), bytes(1), progress),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError):
            wrong()
    assert read_many(here + "/gone", ["a", "b"], "x", (), bytes(16), b"\0\1", progress) == (0, [(0, None, 0)])
    assert read_numbers(here + "/gone", ["a"], ("x",), bytes(1), progress) == (0, [[None]], [(0, 0)])
