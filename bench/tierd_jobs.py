"""Jobs of a large file system."""

from __future__ import annotations

from random import Random


class Job:
    """Streams, or creates small files, or does small I/O; on a few targets, at a rate of its own."""

    def __init__(self, number: int, rng: Random, targets: int) -> None:
        self.name = f"app{number % 300}.{number}"
        self.kind = rng.choices(("stream", "files", "io"), (5, 4, 1))[0]
        count = rng.choices((1, 2, 4, 8, 32), (30, 25, 25, 15, 5))[0]
        self.targets = rng.sample(range(targets), count)
        self.rate = min(200.0, rng.paretovariate(0.9))  # a few jobs do most of the work
        self.active = rng.random()
