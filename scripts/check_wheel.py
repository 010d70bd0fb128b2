"""check_wheel.py WHEEL...: checks that sites can install a wheel without a compiler. Exit status 1 if not.

A wheel must contain a compiled module for each C source of the repository, and only platform tags of manylinux, which
`auditwheel` gives after it has checked every symbol that the modules take from the C library.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent


def sources(root: Path = ROOT) -> list[str]:
    """The C modules, as paths without a suffix: ``lustre_tierd/lustre/formats/_texts``."""
    return sorted("lustre_tierd/" + str(path.relative_to(root).with_suffix(""))
                  for package in ("lustre", "httpserver", "exporter", "tierd")
                  for path in (root / package).rglob("_*.c"))


def mistakes(wheel: Path, modules: list[str]) -> list[str]:
    """What prevents sites from installing this wheel with the C modules and without a compiler."""
    platforms = wheel.stem.split("-")[-1].split(".")
    wrong = [f"the tag {tag} is not one of manylinux" for tag in platforms if not tag.startswith("manylinux")]
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    wrong += [f"{module} is not compiled" for module in modules
              if not any(name.startswith(f"{module}.") and name.endswith(".so") for name in names)]
    return [f"{wheel.name}: {sentence}" for sentence in wrong]


def main(wheels: list[str]) -> int:
    """Print what is wrong with each wheel. Return 1 if anything is wrong or there is no wheel."""
    modules = sources()
    wrong = [sentence for wheel in wheels for sentence in mistakes(Path(wheel), modules)]
    wrong += [] if wheels else ["no wheel was named"]
    wrong += [] if modules else ["no C sources were found"]
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
