"""A progress bar on a terminal; nothing where output goes to a file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def bar(title: str, total: float) -> Iterator[Callable[[float], None]]:
    """What it gives is called with how much of the total is done."""
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        yield lambda _: None
        return
    percent = TextColumn("{task.percentage:3.0f} %")
    columns = TextColumn("{task.description}"), BarColumn(), percent, TimeRemainingColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=total)
        yield lambda done: progress.update(task, completed=done)
