"""A stand-in for the loaded library: C functions as Python ones, with the attributes ctypes gives them."""

import ctypes
import os
from collections.abc import Callable
from typing import Any, cast

from lustre.llapi.calls import Library
from lustre.llapi.prototypes import SYMBOLS


class Function:
    """One C function. What it was called with stays."""

    def __init__(self, body: Callable[..., Any]) -> None:
        self.body = body
        self.calls: list[tuple[Any, ...]] = []
        self.restype: Any = None
        self.argtypes: Any = None

    def __call__(self, *arguments: Any) -> Any:
        assert len(arguments) == len(self.argtypes), "the call does not match the prototype"
        self.calls.append(arguments)
        return self.body(*arguments)


class Handle:
    """All functions there are, doing nothing and answering 0, but for those given; without those named as absent."""

    def __init__(self, absent: tuple[str, ...] = (), **bodies: Callable[..., Any]) -> None:
        self.functions = {
            symbol.name: Function(bodies.get(symbol.name, lambda *arguments: 0))
            for symbol in SYMBOLS if symbol.name not in absent
        }
        if "llapi_layout_alloc" not in bodies:
            self.functions["llapi_layout_alloc"].body = lambda: 4711

    def __getattr__(self, name: str) -> Function:
        try:
            return self.functions[name]
        except KeyError:
            raise AttributeError(name) from None

    def library(self) -> Library:
        return Library(cast(ctypes.CDLL, self), "liblustreapi.so.1")

    def set_calls(self) -> list[tuple[str, tuple[Any, ...]]]:
        """What was set in layouts, function by function, without the handle and without what frees and opens."""
        return [(name.removeprefix("llapi_layout_"), arguments[1:]) for name, function in self.functions.items()
                if name.startswith("llapi_layout_") and "open" not in name and "free" not in name
                for arguments in function.calls if arguments]


def opens(path: bytes, flags: int, mode: int, layout: int) -> int:
    """``llapi_layout_file_open`` on a file system that ignores layouts."""
    return os.open(path, flags, mode)
