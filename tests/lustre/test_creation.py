from pathlib import Path

import pytest

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
    creation.set_limit("lustre-OST0004", "MDT0000", 0)
    assert creation.limits("lustre-OST0004") == {"MDT0000": 0, "MDT0001": 0}
    assert creation.limits("lustre-OST0003") == {"MDT0000": 32}


def test_a_node_that_does_not_serve_the_mdt_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not serve MDT0000"):
        made(tmp_path).set_limit("lustre-OST0004", "MDT0000", 0)
    assert ObjectCreation().limits("lustre-OST0004") == {}
    with pytest.raises(FileNotFoundError):
        ObjectCreation().set_limit("lustre-OST0004", "MDT0000", 0)
