"""What is known of a directory put right, or forgotten, after a look at the files that are there."""

from __future__ import annotations

from collections.abc import Mapping

from lustre.fid import Fid
from lustre.filesystem import FileStatus
from tierd.sense.tallies import File, Tallies


def forget_directory(known: Tallies, directory: str) -> None:
    """Nothing is known of it any more, nor of its files."""
    for key in [key for key in known.by_place if key[1] == directory]:
        for fid in known.forgotten(key).files:
            known.files.pop(fid, None)


def reconcile(known: Tallies, directory: str, found: Mapping[Fid, tuple[str, FileStatus]]) -> None:
    """Put right what is known of a directory, from the files that are there now.

    Files that are not there are forgotten, renamed ones get their names, new ones count for the job that was active
    there last. Who has them open is not known: whoever moves them will find out. Where none of the files that were
    known is left, it may be another directory of that name, and is forgotten.
    """
    tallies = [(tally.last_time, job, tally) for (job, place), tally in known.by_place.items() if place == directory]
    before = {fid for _, _, tally in tallies for fid in known.of(tally)}
    if not tallies or (before and not before & found.keys()):
        forget_directory(known, directory)
        return
    for fid in before:
        if fid in found:
            known.files[fid].name = found[fid][0].encode("utf-8", "surrogateescape")
            known.files[fid].open_count = 0
        else:
            known.files.pop(fid)
    _, _, latest = max(tallies, key=lambda each: each[:2])
    for fid, (name, status) in found.items():
        if fid not in before:
            known.remember(fid, File(latest, directory, name.encode("utf-8", "surrogateescape"), created=True,
                                     created_at=status.mtime, closed_at=status.mtime))
            known.keep(latest, fid)
