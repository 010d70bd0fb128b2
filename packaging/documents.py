"""documents.py PACKAGE ROOT: installs documents and examples of a package below ROOT. Run from the top of the source.

Documents go to /usr/share/doc/PACKAGE, pages of docs/ at its top. Examples go to /usr/share/PACKAGE under the paths
that they have in the source, so that commands of the documentation work in that folder. Links between documents lead to
the new places. A link to a file that the package does not have becomes plain text.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

DOCUMENTS = {
    # Compute nodes often have their root in memory: they get only the pages about the exporter.
    "lustre-exporter": ("README.md", "CHANGELOG.md", "LICENSE", "docs/operations.md", "docs/troubleshooting.md",
                        "docs/metrics.md", "docs/security.md", "docs/sizing.md"),
    "lustre-tierd": ("README.md", "CHANGELOG.md", "LICENSE", "docs/**/*", "packaging/README.md", "alerts/README.md",
                     "dashboards/README.md", "bench/README.md"),
}
EXAMPLES = {
    "lustre-exporter": ("systemd/web.yml", "systemd/lustre-exporter-compute.conf",
                        "systemd/lustre-exporter-textfile.service", "systemd/lustre-exporter-textfile.timer"),
    "lustre-tierd": ("alerts/rules/*.yml", "alerts/rack/*.yml", "alerts/alertmanager.yml", "dashboards/json/*.json",
                     "dashboards/provisioning/**/*", "packaging/containers/**/*", "packaging/ansible/**/*",
                     "systemd/tierd.toml", "systemd/tierd.service", "systemd/tierd@.service", "systemd/web.yml",
                     "systemd/tierd-mover@.service", "systemd/tierd-reader@.service", "systemd/tierd-brake.service",
                     "packaging/nats/nats.conf",
                     "packaging/slurm/*",
                     "tests/tapes/README.md", "tests/tapes/noisy-create-1m/*"),
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def files(patterns: tuple[str, ...]) -> Iterator[PurePosixPath]:
    """The files of the source that match, by their paths in it."""
    for pattern in patterns:
        found = [path for path in sorted(Path().glob(pattern)) if path.is_file() and "__pycache__" not in path.parts]
        if not found:
            raise FileNotFoundError(pattern)
        yield from map(PurePosixPath, found)


def places(package: str) -> dict[PurePosixPath, PurePosixPath]:
    """Where each file of the source is installed. A file that is both document and example counts as a document."""
    doc, share = PurePosixPath("/usr/share/doc", package), PurePosixPath("/usr/share", package)
    examples = {path: share / path for path in files(EXAMPLES[package])}
    documents = {path: doc / (path.relative_to("docs") if path.parts[0] == "docs" else path)
                 for path in files(DOCUMENTS[package])}
    return examples | documents


def with_new_links(text: str, source: PurePosixPath, installed: dict[PurePosixPath, PurePosixPath]) -> str:
    """A page whose links lead to the installed files."""

    def new(found: re.Match[str]) -> str:
        picture, words, link = found[1], found[2], found[3]
        target, hash_sign, anchor = link.partition("#")
        if "://" in link or not target:
            return found[0]
        at = PurePosixPath(os.path.normpath(source.parent / target))
        place = installed.get(at)
        folders = {parent: parent_place for path, path_place in installed.items()
                   for parent, parent_place in zip(path.parents, path_place.parents, strict=False)}
        place = place or (folders.get(at) if Path(at).is_dir() else None)
        if place is None:
            return "" if picture else words
        return f"{picture}[{words}]({os.path.relpath(place, installed[source].parent)}{hash_sign}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(new, part) for part in parts)


def main(package: str, root: Path) -> None:
    """Install all documents and examples of a package."""
    installed = places(package)
    for source, place in installed.items():
        target = root / place.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(with_new_links(Path(source).read_text(encoding="utf-8"), source, installed),
                              encoding="utf-8")
        else:
            shutil.copyfile(source, target)
        target.chmod(0o644)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
