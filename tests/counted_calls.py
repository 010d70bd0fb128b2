"""What a mover asks of Lustre, counted below it: by method here, by request in the mount's own counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from lustre.filesystem import Calls

REQUESTS = {
    "status_of": 2, "layout_of": 0, "open_for_reading": 1, "open_for_swap": 1, "open_fid": 2, "exists": 1,
    "create_volatile": 1, "close": 1, "status": 0, "size": 0, "fid": 0, "mdt_index": 0, "mdt_index_of": 0, "layout": 0,
    "belongings": 1, "flags": 0, "hsm": 1, "project": 0, "project_beside": 2, "set_project": 2, "set_owner": 2,
    "set_times": 2, "read": 1, "write": 2, "truncate": 1, "next_data": 2, "sync": 1, "drop_cache": 0, "lease": 1,
    "lease_held": 0, "data_version": 1, "stored_version": 1, "swap_and_close": 1,
}  # fmt: skip
"""Requests to servers of each call, for a file of one stripe, by the source of Lustre 2.17 (decision 13).

``belongings`` is answered from what the client knows when it is asked the second time, ``layout`` and ``status`` are a
request each after an exchange: these cancel out.
"""


class Counted:
    """Passes every call on to another :class:`lustre.filesystem.Calls`, and keeps the names in their order."""

    def __init__(self, calls: Calls, before: Callable[[str], None] = lambda name: None) -> None:
        self._calls = calls
        self._before = before
        self.made: list[str] = []

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._calls, name)

        def counted(*arguments: Any) -> Any:
            self.made.append(name)
            self._before(name)
            return function(*arguments)

        return counted

    @property
    def calls(self) -> Calls:
        """The same, as what it stands in for."""
        return cast(Calls, self)

    def taken(self) -> Counter[str]:
        """How often each was called since the last call of this method."""
        found, self.made = Counter(self.made), []
        return found
