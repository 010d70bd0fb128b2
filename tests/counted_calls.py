"""What a mover asks of Lustre, counted below it, by method."""

from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from lustre.filesystem import Calls


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
