"""Files a second of both engines beside ``lfs migrate --non-block`` file by file, on the same files, in turn; printed.

Nothing about speed is asserted: one machine's minute is not another's. Each round moves all files to the other pool.
"""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from lustre.layout.model import Layout
from lustre.layout.setstripe import setstripe_arguments
from tests.acceptance.conftest import engine_of
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import Site, checksum, made, noise
from tierd.act.limits import cost_of_move
from tierd.act.movers.moves import Move, Mover, MoveResult
from tierd.act.movers.parallel import ParallelMover

FILES = 48
SIZES = (4 << 10, 64 << 10, 1 << 20)
WORKERS = (2, 4, 8)


Way = Callable[[Layout], Callable[[], None]]
"""What gives all files a layout; made ready first, and then measured."""


def test_in_turn(site: Site, ledger: Ledger) -> None:
    directory = site.directory("how-fast", mdt=site.mdt_count - 1)
    files = [made(site, directory / str(n), noise(SIZES[n % len(SIZES)], n)) for n in range(FILES)]
    digests = [checksum(file) for file in files]
    lease = engine_of(site, "lease")
    ways: dict[str, Way] = {
        "lfs migrate -n, file by file": lambda layout: lambda: by_hand(files, layout),
        "lfs": lambda layout: ready(site, engine_of(site, "lfs"), files, layout),
        "lease": lambda layout: ready(site, lease, files, layout),
    }
    for workers in WORKERS:
        ways[f"lease, {workers} workers"] = beside(site, ParallelMover(lease, site.filesystem.pools, workers, 2), files)
    pools = [site.flash, site.hdd]
    print()
    for _ in range(2):
        for name, way in ways.items():
            go = way(site.in_pool(pools[0]))
            began = time.monotonic()
            go()
            print(f"{name}: {FILES / (time.monotonic() - began):.1f} files/s to {pools[0]}")
            pools.reverse()
    site.forget_everything()
    assert [checksum(file) for file in files] == digests
    ledger.enter(*files)


def by_hand(files: list[Path], layout: Layout) -> None:
    for file in files:
        subprocess.run(["lfs", "migrate", "--non-block", *setstripe_arguments(layout), str(file)], check=True)


def beside(site: Site, mover: Mover, files: list[Path]) -> Way:
    return lambda layout: ready(site, mover, files, layout)


def ready(site: Site, mover: Mover, files: list[Path], layout: Layout) -> Callable[[], None]:
    """The moves, each with the targets its file lies on, as the gate knows them."""
    moves = []
    for file in files:
        size_bytes = file.stat().st_size
        targets = cost_of_move(size_bytes, site.layout(file), layout, site.mount.fsname).targets
        moves.append(Move(site.name(file), layout, size_bytes=size_bytes, targets=frozenset(targets)))

    def go() -> None:
        outcomes = list(mover.move(moves))
        assert {outcome.result for outcome in outcomes} == {MoveResult.DONE}, [o.detail for o in outcomes if o.detail]

    return go
