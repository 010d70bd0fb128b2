"""Acceptance on a real Lustre: as root on a client, in a scratch directory that is removed again.

    pytest -m lustre --lustre-mount=/mnt/lustre --flash-pool=flash --hdd-pool=hdd

Everywhere else these tests are not selected, or, when asked for with ``-m lustre``, skipped.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lustre import mounted
from lustre.errors import LustreError
from lustre.llapi.calls import Library
from lustre.mounted_calls import MountedCalls
from lustre.mounts import find
from lustre.parameters import Roots, Tree
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import Site
from tierd.act.movers.engines import build_mover
from tierd.act.movers.inspection import FileEngine
from tierd.act.movers.moves import Mover
from tierd.config.act import MoverSettings

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The cold re-read comes last of all; without a file system nothing of this is selected, or it is skipped."""
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.lustre)
    if not config.getoption("--lustre-mount"):
        if config.getoption("markexpr"):
            for item in ours:
                item.add_marker(pytest.mark.skip(reason="no --lustre-mount"))
        else:
            config.hook.pytest_deselected(items=ours)
            items[:] = [item for item in items if item not in ours]
        return
    items.sort(key=lambda item: "cold" in item.path.name)


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    option = request.config.getoption
    if os.geteuid():
        pytest.exit("acceptance needs root: it opens by FID, changes owners and drops caches", 4)
    try:
        mount = find(option("--lustre-mount"), Path("/proc/self/mounts").read_bytes())
        library = Library.load(option("--liblustreapi"))
    except LustreError as error:
        pytest.exit(str(error), 4)
    if mount.subdirectory or mount.read_only:
        pytest.exit(f"{mount.path} is a read-only mount, or one of a subdirectory: the whole file system is needed", 4)
    scratch = Path(tempfile.mkdtemp(prefix="tierd-acceptance-", dir=os.path.realpath(option("--lustre-mount"))))
    tree = Tree(Roots.of("/proc", "/sys"))
    found = Site(mount, scratch, option("--flash-pool"), option("--hdd-pool"), library, tree,
                 MountedCalls(library, mount.path, lambda: mounted.archives_follow_swaps(tree, mount.fsname)))
    missing = {found.flash, found.hdd} - {pool for pool, members in found.filesystem.pools().items() if members}
    if missing:
        shutil.rmtree(scratch)
        pytest.exit(f"{mount.fsname} has no pool with targets named {', '.join(sorted(missing))}", 4)
    found.lfs("setstripe", "-c", "1", "-p", found.hdd, str(scratch))
    yield found
    if request.session.testsfailed:
        print(f"\nleft for looking at: {scratch}")
    else:
        shutil.rmtree(scratch)


@pytest.fixture(params=["lfs", "lease"])
def engine_name(request: pytest.FixtureRequest) -> str:
    """Every test of a move runs with both engines."""
    return str(request.param)


@pytest.fixture
def engine(site: Site, engine_name: str) -> Mover:
    return engine_of(site, engine_name)


def engine_of(site: Site, name: str) -> FileEngine:
    settings = MoverSettings(engine="lease" if name == "lease" else "lfs", keep_free=0.0)
    return build_mover(site.mount, site.library, site.tree, settings)


@pytest.fixture(params=["mdt0", "last mdt", "striped directory"])
def directory(request: pytest.FixtureRequest, site: Site, engine_name: str) -> Path:
    """Files on the first MDT, on the last one, and spread over all of them."""
    name = f"{request.node.name.replace('/', '-')}".replace(" ", "-")
    if request.param == "striped directory" and site.mdt_count > 1:
        return site.directory(name, stripes=site.mdt_count)
    return site.directory(name, mdt=site.mdt_count - 1 if request.param == "last mdt" else 0)


@pytest.fixture(scope="session")
def ledger(site: Site) -> Ledger:
    """What every file that was moved must still be, half a minute later and read from the targets."""
    return Ledger(site)
