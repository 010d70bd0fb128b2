"""Whether Lustre tells an archive's copy on when it exchanges the layouts of two files.

The archive's copy of a file is the right one as long as it has the version of the file's data; an exchange of layouts
gives the data another version. Before 2.16 (LU-13048) nothing told the MDT: the file stays marked as archived, cannot
be released any more ("Operation not permitted"), and nothing archives it anew.
"""

from __future__ import annotations

import re

from lustre.text import import_, version
from lustre.tree import Tree, parse_device

_SINCE = (2, 16)
_RELEASE = re.compile(rb"(\d{1,4})\.(\d{1,4})\.")


def told_on(tree: Tree, fsname: str) -> bool:
    """Whether this client and all metadata targets it is connected to do. Not knowing counts as no."""
    ours = tree.read("version")
    releases = [None if ours is None else version.parse(ours).release]
    for name in tree.devices("mdc"):
        if parse_device(name).fsname == fsname:
            connection = tree.read(f"mdc/{name}/import")
            releases.append(None if connection is None else import_.parse(connection).target_version)
    return len(releases) > 1 and all(map(_does, releases))


def _does(release: bytes | None) -> bool:
    found = _RELEASE.match(release or b"")
    return found is not None and (int(found[1]), int(found[2])) >= _SINCE
