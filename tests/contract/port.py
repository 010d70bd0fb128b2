"""What holds for every implementation of ``lustre.filesystem.Filesystem``: the simulated one, and a mounted Lustre."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from lustre.changelog.record import RecordType, decode
from lustre.errors import LustreError
from lustre.layout.directory import DefaultStriping, same_default
from lustre.layout.model import EOF, Component, Layout, pools_of, same_shape
from tierd.act.movers.inspection import MovingFilesystem

MIB = 1 << 20


class RefusedError(LustreError):
    """The engine declines to move the file."""


@dataclass(frozen=True)
class Ground:
    """A file system, an empty directory on it, and hands to put files there."""

    filesystem: MovingFilesystem
    root: str
    make_directory: Callable[[str], None]
    make_file: Callable[[str, int], None]
    set_mtime: Callable[[str, float], None]
    flash: str = "flash"
    hdd: str = "hdd"
    changelog_mdt: str = ""
    """An MDT that keeps a changelog and holds the directory; empty when none does."""

    def directory(self, name: str) -> str:
        """The path of a new directory."""
        self.make_directory(f"{self.root}/{name}")
        return f"{self.root}/{name}"

    def file(self, name: str, size_bytes: int) -> str:
        """The path of a new file."""
        self.make_file(f"{self.root}/{name}", size_bytes)
        return f"{self.root}/{name}"

    def layout(self, path: str) -> Layout:
        """The layout of a file, or the default of a directory, which must have one."""
        found = self.filesystem.layout(path)
        assert found is not None, path
        return found

    def on(self, pool: str) -> Layout:
        return Layout((Component(pool=pool),), composite=False)

    def dom(self, pool: str) -> Layout:
        return Layout((Component(0, 65536, pattern="mdt", stripe_count=0), Component(65536, None, pool=pool)))

    def covering(self) -> Layout:
        return Layout((Component(0, 2 * MIB, pool=self.flash), Component(2 * MIB, None, pool=self.hdd)))


class PortContract:
    """Inherit, and give a fixture ``ground``."""

    def test_pools_have_targets_with_room(self, ground: Ground) -> None:
        pools, space = ground.filesystem.pools(), ground.filesystem.space()
        for pool in (ground.flash, ground.hdd):
            assert pools[pool]
            assert all(target.startswith(f"{ground.filesystem.fsname}-OST") for target in pools[pool])
            assert set(pools[pool]) <= set(space)
        assert all(0 <= room.avail_bytes <= room.free_bytes <= room.size_bytes for room in space.values())

    def test_status_path_and_entries_agree(self, ground: Ground) -> None:
        directory, path = ground.directory("d"), ground.file("d/file", 12345)
        found = ground.filesystem.status(path)
        assert (found.size_bytes, found.is_directory, found.link_count) == (12345, False, 1)
        assert ground.filesystem.path_of(found.fid) == path
        assert ground.filesystem.status(directory).is_directory
        assert list(ground.filesystem.entries(directory)) == ["file"]

    def test_a_missing_path_raises(self, ground: Ground) -> None:
        missing = f"{ground.root}/nothing"
        requested: tuple[Callable[[], object], ...] = (
            lambda: ground.filesystem.status(missing),
            lambda: ground.filesystem.layout(missing),
            lambda: list(ground.filesystem.entries(missing)),
            lambda: ground.filesystem.subdirectories(missing),
            lambda: ground.filesystem.set_default_layout(missing, ground.covering()),
            lambda: ground.filesystem.migrate(missing, ground.on(ground.flash)),
        )
        for ask in requested:
            with pytest.raises(FileNotFoundError):
                ask()

    def test_a_default_is_set_taken_by_new_files_and_taken_away(self, ground: Ground) -> None:
        place = ground.directory("defaults")
        assert ground.filesystem.layout(place) is None
        ground.filesystem.set_default_layout(place, ground.covering())
        assert same_shape(ground.layout(place), ground.covering())
        assert same_shape(ground.layout(ground.file("defaults/small", 1000)), ground.covering())
        ground.filesystem.set_default_layout(place, None)
        assert ground.filesystem.layout(place) is None

    def test_directories_in_a_directory(self, ground: Ground) -> None:
        place, _, _, two = map(ground.directory, ("holds", "holds/one", "holds/one/deeper", "holds/two"))
        ground.file("holds/file", 1000)
        assert sorted(ground.filesystem.subdirectories(place)) == ["one", "two"]
        assert list(ground.filesystem.subdirectories(two)) == []

    def test_a_default_without_a_pool_is_put_back_without_one(self, ground: Ground) -> None:
        """Lustre keeps the pool of the default that is replaced where the new one has no place for a name."""
        place = ground.directory("put-back")
        for before in (Layout((Component(stripe_count=2),), composite=False),
                       Layout((Component(0, 1 << 20), Component(1 << 20, EOF, stripe_count=2)))):
            ground.filesystem.set_default_layout(place, before)
            ground.filesystem.set_default_layout(place, ground.covering())
            ground.filesystem.set_default_layout(place, before)
            found = ground.layout(place)
            assert (pools_of(found), same_shape(found, before)) == ((), True)

    def test_a_move_changes_the_layout_and_nothing_else(self, ground: Ground) -> None:
        path = ground.file("moved", 300_000)
        before = ground.filesystem.status(path)
        for layout in (ground.on(ground.flash), ground.on(ground.hdd), ground.covering()):
            ground.filesystem.migrate(path, layout)
            found = ground.layout(path)
            assert pools_of(found) == pools_of(layout)
            now = ground.filesystem.status(path)
            assert (now.fid, now.size_bytes, int(now.mtime), now.uid, now.gid) == (
                before.fid, before.size_bytes, int(before.mtime), before.uid, before.gid)

    def on_mdt(self, ground: Ground, directory: str) -> str:
        """A file of 2017 whose beginning lies on the MDT, in a new directory."""
        ground.filesystem.set_default_layout(ground.directory(directory), ground.dom(ground.hdd))
        path = ground.file(f"{directory}/a", 30_000)
        ground.set_mtime(path, 1_500_000_000.0)
        return path

    def test_data_that_leaves_the_mdt_keeps_its_time_or_stays(self, ground: Ground) -> None:
        """The exchange itself sets the modification time to the present, whoever asks for it."""
        path = self.on_mdt(ground, "leaves-mdt")
        before = ground.layout(path)
        try:
            ground.filesystem.migrate(path, ground.on(ground.flash))
        except RefusedError:
            assert same_shape(ground.layout(path), before)
        else:
            now = ground.layout(path)
            assert pools_of(now) == (ground.flash,)
        assert int(ground.filesystem.status(path).mtime) == 1_500_000_000

    def test_data_on_the_mdt_stays_there_whatever_pool_stands_on_it(self, ground: Ground) -> None:
        """Lustre 2.17 puts the pool of the directory's default on the component of the MDT: it means nothing."""
        path = self.on_mdt(ground, "stays-on-mdt")
        ground.filesystem.migrate(path, ground.dom(ground.flash))
        assert same_shape(ground.layout(path), ground.dom(ground.flash))
        assert pools_of(ground.layout(path)) == (ground.flash,)
        assert int(ground.filesystem.status(path).mtime) == 1_500_000_000

    def test_data_moves_onto_an_mdt_and_keeps_its_time(self, ground: Ground) -> None:
        path = ground.file("onto-mdt", 30_000)
        ground.set_mtime(path, 1_500_000_000.0)
        before = ground.filesystem.status(path)
        ground.filesystem.migrate(path, ground.dom(ground.hdd))
        assert same_shape(ground.layout(path), ground.dom(ground.hdd))
        after = ground.filesystem.status(path)
        assert (after.fid, after.size_bytes, int(after.mtime)) == (before.fid, before.size_bytes, 1_500_000_000)

    def test_a_component_on_the_mdt_keeps_its_size(self, ground: Ground) -> None:
        path = self.on_mdt(ground, "larger-on-mdt")
        first, *rest = ground.dom(ground.hdd).components
        assert first.extent_end is not None
        larger = Layout((replace(first, extent_end=2 * first.extent_end),
                         *(replace(part, extent_start=2 * first.extent_end) for part in rest)))
        with pytest.raises(OSError):  # noqa: PT011 -- the ports give it different numbers
            ground.filesystem.migrate(path, larger)
        assert same_shape(ground.layout(path), ground.dom(ground.hdd))

    def test_a_directory_does_not_move(self, ground: Ground) -> None:
        place = ground.directory("stays")
        with pytest.raises(OSError):  # noqa: PT011 -- a refusal here, EISDIR there
            ground.filesystem.migrate(place, ground.on(ground.flash))

    def test_the_changelog_shows_a_move(self, ground: Ground) -> None:
        if not ground.changelog_mdt:
            pytest.skip("no MDT keeps a changelog")
        path = ground.file("told", 1000)
        fid = ground.filesystem.status(path).fid
        after = -1
        while data := ground.filesystem.changelog(ground.changelog_mdt, after):
            after = decode(data)[0][-1].index
        ground.filesystem.migrate(path, ground.on(ground.flash))
        records, _ = decode(ground.filesystem.changelog(ground.changelog_mdt, after))
        assert all(record.index > after for record in records)
        assert [r.type for r in records if r.target == fid].count(RecordType.LAYOUT) == 1

    def test_the_space_of_mdts(self, ground: Ground) -> None:
        space = ground.filesystem.metadata_space()
        assert all(mdt.startswith(f"{ground.filesystem.fsname}-MDT") for mdt in space)
        assert space
        assert all(0 <= room.used <= 1 and room.inodes_free <= room.inodes for room in space.values())

    def test_a_default_striping_of_directories_is_set_and_deleted(self, ground: Ground) -> None:
        filesystem, place = ground.filesystem, ground.directory("wide")
        assert filesystem.default_striping(place) is None
        wanted = DefaultStriping(2, -1, "crush", 1)
        filesystem.set_default_striping(place, wanted)
        assert same_default(filesystem.default_striping(place), wanted)
        assert not filesystem.directory_stripes(place).is_striped, "the directory itself stays as it is"
        filesystem.set_default_striping(place, replace(wanted, stripe_count=1))
        filesystem.set_default_striping(place, None)
        assert filesystem.default_striping(place) is None

    def test_a_file_moves_to_the_ost_that_is_named(self, ground: Ground) -> None:
        path = ground.file("placed", MIB)
        ground.set_mtime(path, 1_600_000_000)
        for target in ground.filesystem.pools()[ground.hdd]:
            index = int(target[-4:], 16)
            wanted = Layout((Component(pool=ground.hdd, ost_list=(index,)),), composite=False)
            ground.filesystem.migrate(path, wanted)
            found = ground.filesystem.layout(path)
            assert [one.ost_index for one in found.components[0].objects] == [index]
            assert ground.filesystem.status(path).size_bytes == MIB
