"""The file system under acceptance, and what an administrator would type to look at it."""

import hashlib
import os
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lustre.attributes import layout_at
from lustre.layout.model import Component, Layout
from lustre.llapi.calls import Library
from lustre.mounted import MountedFilesystem
from lustre.mounted_calls import MountedCalls
from lustre.mounts import Mount
from lustre.parameters import Tree, parse_device
from tierd.act.movers.inspection import objects_outside_pool
from tierd.act.movers.moves import Move, MoveOutcome, Mover

MIB = 1 << 20


@dataclass(frozen=True)
class Site:
    """One file system, a scratch directory on it, and two pools."""

    mount: Mount
    scratch: Path
    flash: str
    hdd: str
    library: Library
    tree: Tree
    calls: MountedCalls

    @cached_property
    def filesystem(self) -> MountedFilesystem:
        return MountedFilesystem(self.mount, self.library, self.tree)

    @property
    def mdt_count(self) -> int:
        devices = map(parse_device, self.tree.devices("mdc"))
        return len({device.target for device in devices if device.fsname == self.mount.fsname})

    @cached_property
    def instance(self) -> str:
        """Last part of the names of this mount's devices: other mounts and servers on the node have devices too."""
        return self.lfs("getname", self.mount.path).split()[0].rpartition("-")[2]

    def lfs(self, *arguments: str) -> str:
        """Output of ``lfs``. Raises with its error output if it fails."""
        done = subprocess.run(["lfs", *arguments], capture_output=True, check=False, errors="surrogateescape")
        assert done.returncode == 0, f"lfs {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def directory(self, name: str, mdt: int = 0, stripes: int = 1) -> Path:
        """A directory on an MDT, or striped over several."""
        place = self.scratch / name
        if stripes > 1:
            self.lfs("mkdir", "-c", str(stripes), str(place))
        else:
            self.lfs("mkdir", "-i", str(mdt), str(place))
        self.lfs("setstripe", "-c", "1", "-p", self.hdd, str(place))
        return place

    def name(self, place: Path) -> str:
        """The path as tierd names it: from the root of the file system."""
        return "/" + str(place.relative_to(self.mount.path))

    def in_pool(self, pool: str, stripes: int = 1) -> Layout:
        return Layout((Component(pool=pool, stripe_count=stripes),), composite=False)

    def pfl(self) -> Layout:
        return Layout((Component(0, 2 * MIB, pool=self.flash), Component(2 * MIB, None, pool=self.hdd)))

    def layout(self, place: Path) -> Layout:
        found = layout_at(str(place))
        assert found is not None, place
        return found

    def pools_of(self, place: Path) -> list[str]:
        """Pools of the components, after a look whether the objects really are there; "" for data on the MDT.

        There Lustre 2.17 shows the pool of the directory, from which nothing is allocated.
        """
        layout = self.layout(place)
        assert objects_outside_pool(layout, self.filesystem.pools()) == [], place
        return ["" if component.on_mdt else component.pool for component in layout.components]

    def used_bytes(self) -> int:
        return sum(room.size_bytes - room.free_bytes for room in self.filesystem.space().values())

    def forget_everything(self) -> None:
        """Make the next read come from the targets: locks given back, caches dropped."""
        os.sync()
        subprocess.run(["lctl", "set_param", "-n", "ldlm.namespaces.*osc*.lru_size=clear"], check=False,
                       capture_output=True)
        subprocess.run(["lctl", "set_param", "-n", "ldlm.namespaces.*mdc*.lru_size=clear"], check=False,
                       capture_output=True)
        Path("/proc/sys/vm/drop_caches").write_text("3\n")


def checksum(place: Path) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def long_ago(place: Path) -> Path:
    """Make a file old: tierd gives ``lfs`` no file that was modified a moment ago."""
    os.utime(place, (1_600_000_000, 1_500_000_000))
    return place


def noise(size_bytes: int, seed: int) -> bytes:
    """Bytes that are different everywhere, the same for the same seed."""
    return hashlib.shake_256(seed.to_bytes(8, "little")).digest(size_bytes)


def moved(engine: Mover, site: Site, place: Path, layout: Layout) -> MoveOutcome:
    (outcome,) = engine.move([Move(site.name(place), layout)])
    return outcome


def made(site: Site, place: Path, data: bytes, shape: str = "") -> Path:
    if shape:
        site.lfs("setstripe", *shape.format(flash=site.flash, hdd=site.hdd).split(), str(place))
    with place.open("r+b" if shape else "wb") as file:
        file.write(data)
    return long_ago(place)
