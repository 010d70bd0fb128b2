import io
import tarfile
from pathlib import Path

import pytest

from lustre.unpack import unpack


def archive(path: Path, *members: tuple[str, bytes | str]) -> Path:
    """Bytes are a file's content, text is where a link leads."""
    with tarfile.open(path, "w:xz") as tar:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


def test_wanted_files_and_links_that_stay_inside(tmp_path: Path) -> None:
    made = archive(tmp_path / "a.tar.xz", ("proc/x", b"1"), ("proc/y", b"2"), ("proc/l", "x"),
                   ("proc/out", "../../../etc"))
    unpack(made, tmp_path / "to", lambda name: name != "proc/y")
    assert sorted(p.name for p in (tmp_path / "to/proc").iterdir()) == ["l", "x"]
    assert (tmp_path / "to/proc/l").read_bytes() == b"1"


@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(tarfile.TarError, match="leads out of the folder"):
        unpack(archive(tmp_path / "a.tar.xz", (name, b"1")), tmp_path / "to")
    assert not (tmp_path / "x").exists()
