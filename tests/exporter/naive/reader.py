"""Files by name, whose devices they are, and samples that are made alike from many of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

from tests.exporter.naive.forms import Labels, Sample, counters


class Reader:
    """A tree of parameter files, given which mount point each client instance is."""

    def __init__(self, root: Path, mounts: dict[str, str], fs: str = "lustre") -> None:
        self.root = root
        self.mounts = mounts
        self.fs = fs

    def places(self, pattern: str) -> dict[str, Path]:
        """{path below lustre/: file}, the first of sysfs, debugfs, procfs that has it."""
        found: dict[str, Path] = {}
        for top in ("sys/fs/lustre", "sys/kernel/debug/lustre", "proc/fs/lustre"):
            for path in (self.root / top).glob(pattern):
                if path.is_file():
                    found.setdefault(str(path.relative_to(self.root / top)), path)
        return found

    def files(self, kind: str, name: str) -> Iterator[tuple[str, str]]:
        """(device, text) of a parameter."""
        for path, file in sorted(self.places(f"{kind}/*/{name}").items()):
            yield path.split("/")[1], file.read_text()

    def one(self, path: str) -> str | None:
        file = self.places(path).get(path)
        return None if file is None else file.read_text()

    def lnet(self, name: str) -> str | None:
        file: Path = self.root / "sys/kernel/debug/lnet" / name
        return file.read_text() if file.exists() else None

    def linked(self, path: str) -> bool:
        """The folder is a link to another that is there too."""
        return any((self.root / top / path).parent.is_symlink() for top in ("proc/fs/lustre", "sys/fs/lustre"))

    def client(self, device: str) -> Labels | None:
        """Labels of a client's device; None when it is not one of a mount."""
        instance = device.rsplit("-", maxsplit=1)[-1]
        if instance not in self.mounts:
            return None
        labels = {"fs": self.fs, "mount": self.mounts[instance]}
        target = re.search(r"-((?:OST|MDT)[0-9a-f]{4})-", device)
        return labels if target is None else {**labels, "target": target[1]}

    def server(self, device: str) -> Labels | None:
        match = re.fullmatch(rf"{self.fs}-((?:OST|MDT)[0-9a-f]{{4}})", device)
        return {"fs": self.fs, "target": match[1]} if match else None

    def object_target(self, device: str) -> Labels | None:
        """Of an osc, osp or obdfilter."""
        match = re.fullmatch(rf"{self.fs}-(OST....)(-osc-.*)?", device)
        return {"target": match[1]} if match else None

    def pools(self) -> dict[str, list[str]]:
        """{target: its pools}, from the clients' lists."""
        members: dict[str, set[str]] = defaultdict(set)
        listed = self.places("lov/*-clilov-*/pools/*") or self.places("lod/*/pools/*")
        for path, file in listed.items():
            for line in file.read_text().split():
                members[line.removeprefix(f"{self.fs}-").removesuffix("_UUID")].add(path.split("/")[-1])
        return {target: sorted(pools) for target, pools in members.items()}

    def operations(self, prefix: str, labels: Labels, text: str) -> Iterator[Sample]:
        counted = list(counters(text))
        names = {name for name, *_ in counted}
        for name, samples, unit, total in counted:
            if unit == "bytes":
                assert total is not None
                yield f"{prefix}_{name}_total", labels, Decimal(total)
                short = name.removesuffix("_bytes")
                if short not in names and short in {"read", "write"}:
                    yield f"{prefix}_operations_total", {**labels, "operation": short}, Decimal(samples)
            else:
                yield f"{prefix}_operations_total", {**labels, "operation": name}, Decimal(samples)
                if unit == "usecs":
                    assert total is not None
                    yield f"{prefix}_operation_seconds_total", {**labels, "operation": name}, Decimal(total).scaleb(-6)

    def room(self, prefix: str, kind: str, of: Callable[[str], Labels | None]) -> Iterator[Sample]:
        for parameter, name, factor in (
            ("kbytestotal", "size_bytes", 1024), ("kbytesfree", "free_bytes", 1024),
            ("kbytesavail", "avail_bytes", 1024), ("filestotal", "files", 1), ("filesfree", "files_free", 1),
        ):  # fmt: skip
            yield from self.numbers(kind, parameter, f"{prefix}_{name}", of, factor)

    def numbers(
        self, kind: str, parameter: str, name: str, of: Callable[[str], Labels | None], factor: int = 1
    ) -> Iterator[Sample]:
        for device, text in self.files(kind, parameter):
            if (labels := of(device)) is not None:
                yield name, labels, Decimal(int(text) * factor)
