"""Layouts as ``lfs`` sees them; default layouts of directories, set and undone."""

import os
from pathlib import Path

import pytest

from lustre.attributes import layout_at
from lustre.layout.model import Layout, same_shape
from lustre.layout.yaml import from_yaml
from tests.acceptance.site import MIB, Site

SHAPES = (
    "-c 1 -p {flash}",
    "-c -1 -S 4M -p {hdd}",
    "-E 2M -c 1 -p {flash} -E -1 -c 1 -p {hdd}",
    "-E 1M -c 1 -p {flash} -E 64M -c 2 -p {hdd} -E -1 -c -1",
    "-E 64K -L mdt -E -1 -c 1 -p {flash}",
    "-C 4 -p {flash}",
    "-E 512M -c 1 -p {flash} -z 64M -E -1 -c 1 -p {hdd}",
)


def words(site: Site, shape: str) -> list[str]:
    return shape.format(flash=site.flash, hdd=site.hdd).split()


def as_lfs_says(site: Site, place: Path) -> Layout:
    return from_yaml(site.lfs("getstripe", "-y", str(place)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [0, 3 * MIB])
def test_files_are_read_as_lfs_reads_them(site: Site, shape: str, size: int) -> None:
    place = site.scratch / f"layout-{SHAPES.index(shape)}-{size}"
    site.lfs("setstripe", *words(site, shape), str(place))
    with place.open("r+b") as file:
        file.write(os.urandom(size))
    found, said = layout_at(str(place)), as_lfs_says(site, place)
    assert found is not None
    assert same_shape(found, said)
    assert [c.objects for c in found.components] == [c.objects for c in said.components]
    descriptor = site.calls.open_fid(site.filesystem.status(site.name(place)).fid)
    assert site.calls.layout(descriptor) == found
    site.calls.close(descriptor)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_default_is_set_as_lfs_would_and_undone(site: Site, shape: str) -> None:
    model = site.scratch / f"model-{SHAPES.index(shape)}"
    copy = site.scratch / f"copy-{SHAPES.index(shape)}"
    model.mkdir()
    copy.mkdir()
    site.lfs("setstripe", *words(site, shape), str(model))
    wanted = site.filesystem.layout(site.name(model))
    assert wanted is not None
    before = site.filesystem.layout(site.name(copy))
    site.filesystem.set_default_layout(site.name(copy), wanted)
    found = site.filesystem.layout(site.name(copy))
    assert found is not None
    assert same_shape(found, wanted)
    assert same_shape(as_lfs_says(site, copy), as_lfs_says(site, model))
    (copy / "new").write_bytes(b"data")
    assert [c.pool for c in site.layout(copy / "new").components][:1] == [wanted.components[0].pool]
    site.filesystem.set_default_layout(site.name(copy), before)
    after = site.filesystem.layout(site.name(copy))
    assert (after is None) == (before is None)
    assert after is None or before is None or same_shape(after, before)


def test_paths_of_fids(site: Site) -> None:
    for name in ("plain", "with blank", "uml\udce4ut", "new\nline"):
        place = site.scratch / name
        place.write_bytes(b"data")
        status = site.filesystem.status(site.name(place))
        assert site.filesystem.path_of(status.fid) == site.name(place)
        assert str(status.fid) in site.lfs("path2fid", str(place))
        place.unlink()
        with pytest.raises(FileNotFoundError):
            site.filesystem.path_of(status.fid)


def test_entries(site: Site) -> None:
    place = site.directory("listed")
    for number in range(300):
        (place / str(number)).touch()
    assert sorted(site.filesystem.entries(site.name(place)), key=int) == [str(n) for n in range(300)]


def test_pools_and_room(site: Site) -> None:
    for pool in (site.flash, site.hdd):
        said = site.lfs("pool_list", f"{site.mount.fsname}.{pool}").split()
        assert set(site.filesystem.pools()[pool]) == {word.removesuffix("_UUID") for word in said if "-OST" in word}
    assert set(site.filesystem.pools()[site.flash]) <= set(site.filesystem.space())
