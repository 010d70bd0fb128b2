from collections.abc import Callable, Mapping

from lustre.fid import Fid
from tierd.sense.changelogs.counts import CountTables, DirectoryCounts, File
from tierd.sense.changelogs.roll_up import JobCounts

def prepare(
    job: type[JobCounts],
    counts: type[DirectoryCounts],
    file: type[File],
    fid: type[Fid],
    nid_text: Callable[[bytes, bool], str],
    nobody: str,
    most_clients: int,
    write_modes: int,
    /,
) -> object: ...
def add(
    prepared: object,
    data: bytes,
    at: int,
    end: int,
    jobs: dict[bytes, JobCounts],
    files: dict[Fid, File],
    moved: Mapping[Fid, float],
    known: CountTables,
    most_files: int,
    paths: bool,
    /,
) -> tuple[int, int, int]: ...
