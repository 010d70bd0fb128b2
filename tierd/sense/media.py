"""Which pools are on flash, as far as the servers report it.

The kernel of a server knows whether the device of a target rotates (``osd-*.*.nonrotational``, Lustre 2.11). A target
that no source reports is unknown: it stands against nothing.

>>> media = PoolMedia([PoolPair("flash", "hdd")])
>>> media.learn_pools({"flash": ["l-OST0000"], "hdd": ["l-OST0001"], "nvme": ["l-OST0002"]})
>>> media.learn_devices({"l-OST0000": False, "l-OST0002": True})
>>> media.problem
"pool 'flash' is configured as flash, but the servers report rotating disks: l-OST0000; all targets of 'nvme' are flash"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tierd.model import PoolPair
from tierd.text import first_names


class PoolMedia:
    """The devices of pools. One thread learns about pools, another about devices; any thread asks."""

    def __init__(self, pool_pairs: Iterable[PoolPair]) -> None:
        """``pool_pairs`` are the configured pools."""
        self.pool_pairs = tuple(pool_pairs)
        self._is_flash: Mapping[str, bool] = {}
        self._pools: Mapping[str, Sequence[str]] = {}

    def learn_devices(self, is_flash: Mapping[str, bool]) -> None:
        """Take over whether the device of each known target (full name) is flash."""
        self._is_flash = is_flash

    def learn_pools(self, pools: Mapping[str, Sequence[str]]) -> None:
        """Take over the targets of each pool."""
        self._pools = pools

    def rotating(self, pool: str) -> list[str]:
        """The targets of a pool that are known to be on rotating disks."""
        return [target for target in self._pools.get(pool, ()) if self._is_flash.get(target) is False]

    def is_on_flash(self, pool: str) -> bool:
        """Whether all targets of a pool are known to be flash."""
        return bool(self._pools.get(pool)) and all(map(self._is_flash.get, self._pools[pool]))

    def wrong_pools(self) -> dict[str, str]:
        """What is wrong with each configured pool, for pools whose devices are known to be of the other kind."""
        found: dict[str, str] = {}
        for pair in self.pool_pairs:
            flash, disks = pair.flash, pair.hdd
            if rotating := self.rotating(flash):
                found[flash] = (f"pool {flash!r} is configured as flash, but the servers report rotating disks: "
                                f"{first_names(rotating)}{self._proposal()}")
            elif self._pools and not self._pools.get(flash) and self._proposal():
                found[flash] = f"pool {flash!r} has no targets{self._proposal()}"
            if self.is_on_flash(disks):
                found[disks] = f"pool {disks!r} is configured as disks, but all its targets are flash"
        return found

    @property
    def problem(self) -> str:
        """All that is wrong with the configured pools; "" if nothing is known to be wrong."""
        return "; ".join(self.wrong_pools().values())

    def _proposal(self) -> str:
        configured = {pool for pair in self.pool_pairs for pool in (pair.flash, pair.hdd)}
        named = [repr(pool) for pool in sorted(self._pools) if pool not in configured and self.is_on_flash(pool)]
        return f"; all targets of {', '.join(named)} are flash" if named else ""
