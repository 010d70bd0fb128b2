"""The journal of a target: one commit makes many changes safe, and a checkpoint writes metadata to its place later.

A commit is two I/Os one after the other: the blocks of the transaction with their descriptor, then the commit record. A
request that arrives while a commit runs joins the next one. Without a request, a commit happens every five seconds when
something changed. After a commit the changed metadata blocks still have to go to their own places (checkpoint); blocks
near each other go together.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from simulator.devices.device import Device, Io
from simulator.engine import Completion, Engine

BLOCK_BYTES = 4096
INTERVAL_SECONDS = 5.0
BATCH_SECONDS = 0.015
"""Longest delay of a requested commit so that others can join; at most the duration of a commit."""
CHECKPOINT_IOS_MAX = 64
BLOCKS_PER_CHECKPOINT_IO = 4
"""Adjacent metadata blocks that are written as one I/O."""


class Journal:
    """Group commit on one device."""

    def __init__(self, engine: Engine, device: Device, position_bytes: int, home: Device | None = None) -> None:
        self.commits = 0
        self._engine = engine
        self._device = device
        self._home_device = home or device
        """Device of the metadata: the target's own disks, even with an external journal."""
        self._position_bytes = position_bytes
        self._head_bytes = 0
        self._blocks: set[Hashable] = set()
        self._home: set[Hashable] = set()
        self._joined: list[Completion] = []
        self._running = False
        self._timer = False
        self._batching = False
        self._started_at = 0.0
        self._commit_seconds = 0.0

    def change(self, *blocks: Hashable) -> None:
        """Record changed metadata blocks. Each is written once per transaction and once per checkpoint."""
        self._blocks.update(blocks)
        if not self._timer:
            self._timer = True
            self._engine.after(INTERVAL_SECONDS, self._interval)

    def commit(self) -> Completion:
        """Commit all changes so far; completes at once without changes."""
        done = Completion()
        if not self._blocks and not self._running:
            done.succeed()
            return done
        self._joined.append(done)
        if not self._running and not self._batching:
            self._batching = True
            # so that others can join; not longer than a commit takes
            self._engine.after(min(BATCH_SECONDS, self._commit_seconds), self._start)
        return done

    def _interval(self) -> None:
        self._timer = False
        if self._blocks and not self._running and not self._batching:
            self._start()
        self._checkpoint()
        if self._home or self._blocks:
            self._timer = True
            self._engine.after(INTERVAL_SECONDS, self._interval)

    def _start(self) -> None:
        self._running = True
        self._batching = False
        self._started_at = self._engine.now
        waiting, self._joined = self._joined, []
        blocks, self._blocks = self._blocks, set()
        self._home |= blocks
        self._write(BLOCK_BYTES * (1 + len(blocks)), lambda: self._write(BLOCK_BYTES, lambda: self._done(waiting)))

    def _write(self, size_bytes: int, then: Callable[[], None]) -> None:
        position = self._position_bytes + self._head_bytes
        self._head_bytes = (self._head_bytes + size_bytes) % (64 << 20)
        self._device.submit(Io(True, position, size_bytes, then))

    def _done(self, waiting: list[Completion]) -> None:
        self.commits += 1
        self._running = False
        self._commit_seconds = (3 * self._commit_seconds + self._engine.now - self._started_at) / 4
        if self._joined:  # those that asked during the commit need the next one
            self._start()
        for completion in waiting:
            completion.succeed()

    def _checkpoint(self) -> None:
        ios = min(-(-len(self._home) // BLOCKS_PER_CHECKPOINT_IO), CHECKPOINT_IOS_MAX)
        self._home.clear()
        for number in range(ios):
            place = self._position_bytes // 2 + number * (1 << 20)
            self._home_device.submit(Io(True, place, BLOCKS_PER_CHECKPOINT_IO * BLOCK_BYTES, lambda: None))
