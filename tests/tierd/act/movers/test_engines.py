"""Choosing an engine."""

from pathlib import Path

import pytest

from lustre.mounts import Mount
from lustre.parameters import Roots, Tree
from tests.lustre.fake_llapi import Handle
from tierd.act.movers import engines
from tierd.act.movers.engines import EitherEngine
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.lease import LeaseMover
from tierd.act.movers.lfs import LfsMover
from tierd.config import act
from tierd.config.settings import Settings

MOUNT = Mount("lustre", "/mnt/lustre")


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(Roots.of(tmp_path, tmp_path))


def order(engine: FileEngine) -> list[type[FileEngine]]:
    """The engines that a move may go to, in turn, if it changes no mirrors."""
    engine = getattr(engine, "engine", engine)
    return [*order(engine.first), *order(engine.other)] if isinstance(engine, EitherEngine) else [type(engine)]


def test_lfs_is_the_default_until_the_other_engine_is_proven(tree: Tree) -> None:
    assert act.MoverSettings().engine == "lfs"
    usual, lease = (order(engines.build_mover(MOUNT, Handle().library(), tree, settings))
                    for settings in (act.MoverSettings(), act.MoverSettings(engine="lease")))
    assert (usual[0], lease[0]) == (LfsMover, LeaseMover)
    assert {*usual} == {*lease} > {LfsMover}


@pytest.mark.parametrize(("variable", "expected"), [
    ("SLURM_JOB_ID\n", {"SLURM_JOB_ID": "tierd.0"}), ("procname_uid\n", {}), ("nodelocal", {}), ("disable", {}),
    ("", {}),
])
def test_servers_count_the_work_of_lfs_as_tierds(tmp_path: Path, variable: str, expected: dict[str, str]) -> None:
    (tmp_path / "sys" / "fs" / "lustre").mkdir(parents=True)
    (tmp_path / "sys" / "fs" / "lustre" / "jobid_var").write_text(variable)
    assert engines.job_tag(Tree(Roots.of(tmp_path / "proc", tmp_path / "sys"))) == expected
    assert engines.JOB_TAG in Settings().own_jobs
