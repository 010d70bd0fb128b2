def read_many(
    parent: str,
    devices: list[str],
    name: str,
    keys: tuple[bytes, ...] | None,
    marks: bytes,
    skip: bytes | bytearray,
    progress: bytearray,
    /,
) -> tuple[int, list[tuple[int, bytes | None, int]]]: ...
def read_numbers(
    parent: str, devices: list[str], names: tuple[str, ...], skip: bytes | bytearray, progress: bytearray, /
) -> tuple[int, list[list[int | None]], list[tuple[int, int]]]: ...
