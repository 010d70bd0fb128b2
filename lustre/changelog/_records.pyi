from collections.abc import Callable

from lustre.changelog.record import Record, RecordType
from lustre.fid import Fid

def take(
    data: bytes,
    at: int,
    records: list[Record],
    most: int,
    make: tuple[type[Record], type[Fid], tuple[RecordType, ...], Callable[[bytes, bool], str]],
    /,
) -> int: ...
