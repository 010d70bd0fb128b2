"""What a collector hands over: finished lines, by family."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from exporter.families import Family


@dataclass(slots=True)
class Page:
    """What one pass of one collector found: for each family its chunks of finished lines."""

    chunks: dict[Family, list[bytes]] = field(default_factory=dict)

    def add(self, family: Family, chunk: bytes) -> None:
        """Put finished lines below their family."""
        if chunk:
            self.chunks.setdefault(family, []).append(chunk)

    def extend(self, lines: Iterable[tuple[Family, bytes]]) -> None:
        """Put finished lines of several families; none of them empty."""
        chunks = self.chunks
        for family, chunk in lines:
            if family in chunks:
                chunks[family].append(chunk)
            else:
                chunks[family] = [chunk]

    def sample(self, family: Family, labels: bytes, value: int | float | bytes | None) -> None:
        """Put one sample; None, what this node does not show, leaves none."""
        if value is not None:
            self.add(family, family.line(labels, value))

    def lines(self) -> tuple[tuple[Family, bytes], ...]:
        """Each family with all its lines."""
        return tuple([(family, b"".join(chunks)) for family, chunks in self.chunks.items()])
