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
def measure(data: bytes, at: int, most: int, /) -> tuple[int, int, int, float, float]: ...
