"""A real Prometheus with a day of samples in it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.servers import output_of, prometheus
from tierd.clock import SystemClock

DAY_SECONDS = 90_000
"""Time between the first sample and now. The last one is a minute old."""


@contextmanager
def prometheus_with(folder: Path, series: Mapping[str, Callable[[int], float]]) -> Iterator[tuple[str, int]]:
    """Yield its URL and the time. ``series`` gives the value so many seconds after the first sample."""
    now, lines, typed = int(SystemClock().now()), list[str](), set[str]()
    for name, value in series.items():
        family, of_counter, _ = name.partition("{")[0].partition("_total")
        lines += [] if family in typed else [f"# TYPE {family} {'counter' if of_counter else 'gauge'}"]
        typed.add(family)
        lines += [f"{name} {value(at)} {now - DAY_SECONDS + at}" for at in range(0, DAY_SECONDS - 60, 60)]
    (folder / "day.txt").write_text("\n".join([*lines, "# EOF", ""]))
    output_of("promtool", "tsdb", "create-blocks-from", "openmetrics", "-q", folder / "day.txt", folder / "data")
    with prometheus(folder, folder / "data") as server:
        yield server.url, now


def label_text(value: str) -> str:
    """A value of a label in the text format."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
