from pathlib import Path

from lustre.creation import LocalObjectCreation, ObjectCreation
from lustre.parameters import Roots, Tree


def made(tmp_path: Path, **devices: str) -> LocalObjectCreation:
    for name, value in devices.items():
        folder = tmp_path / "sys/fs/lustre/osp" / name.replace("_", "-")
        folder.mkdir(parents=True)
        (folder / "max_create_count").write_text(value)
    return LocalObjectCreation(Tree(Roots.of(tmp_path / "proc", tmp_path / "sys")), "lustre")


def test_the_limits_of_the_mdts_of_this_node(tmp_path: Path) -> None:
    creation = made(tmp_path, lustre_OST0004_osc_MDT0000="20000\n", lustre_OST0004_osc_MDT0001="0\n",
                    lustre_OST0003_osc_MDT0000="32\n", other_OST0004_osc_MDT0000="1\n",
                    other_OST0003_osc_MDT0000="0\n", lustre_2_OST0003_osc_MDT0000="0\n",
                    lustre_OST0005_osc_MDT0000="error")
    assert creation.limits("lustre-OST0004") == {"MDT0000": 20000, "MDT0001": 0}
    assert creation.limits("lustre-OST0005") == {}
    assert creation.stopped() == {"lustre-OST0004"}
    assert ObjectCreation().limits("lustre-OST0004") == {}

