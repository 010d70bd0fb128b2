"""What every file was when its test was done with it, for one last look much later.

A move can seem perfect for some seconds and have destroyed the data: only a later cold read shows it.
"""

import time
from pathlib import Path

from tests.acceptance.site import Site, checksum

LATER_SECONDS = 40.0


class Ledger:
    """Paths and checksums."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._expected: dict[Path, tuple[int, str]] = {}
        self._last = 0.0

    def enter(self, *places: Path) -> None:
        """Remember files as they are now; their test has just found them right."""
        self._expected |= {place: (place.stat().st_size, checksum(place)) for place in places}
        self._last = time.monotonic()

    def __len__(self) -> int:
        return len(self._expected)

    def differences(self) -> list[str]:
        """Wait until long enough has passed since the last entry, then read everything from the targets."""
        time.sleep(max(0.0, self._last + LATER_SECONDS - time.monotonic()))
        self._site.forget_everything()
        return [f"{place}: {found}" for place, expected in self._expected.items()
                if (found := _difference(place, expected))]


def _difference(place: Path, expected: tuple[int, str]) -> str:
    try:
        found = place.stat().st_size, checksum(place)
    except OSError as error:
        return str(error)
    return "" if found == expected else f"was {expected}, is {found}"
