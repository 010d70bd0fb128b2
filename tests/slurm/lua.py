"""The Lua of Slurm's plugin in this process: runs packaging/slurm/burst_buffer.lua as slurmctld does, without Slurm."""

from __future__ import annotations

import ctypes
from pathlib import Path

SOURCE = Path(__file__).parent.parent.parent / "packaging" / "slurm" / "burst_buffer.lua"
LIBRARIES = ("liblua5.1.so.0", "liblua5.2.so.0", "liblua5.3.so.0", "liblua5.4.so.0")
SLURM = "slurm = {SUCCESS = 0, ERROR = -1, log_info = function() end, log_error = function() end}\n"
_MULTIPLE = -1


def installed() -> list[str]:
    """The releases of Lua on this machine. Slurm's plugin depends on one."""
    found = []
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        found.append(name)
    return found


class Lua:
    """A state in which the plugin is loaded."""

    def __init__(self, library: str) -> None:
        self._lua, self._first = ctypes.CDLL(library), "5.1" in library
        self._lua.luaL_newstate.restype = ctypes.c_void_p
        self._lua.lua_tolstring.restype = ctypes.c_void_p
        self._state = ctypes.c_void_p(self._lua.luaL_newstate())
        self._lua.luaL_openlibs(self._state)
        self._run(SLURM.encode() + SOURCE.read_bytes())

    def _run(self, text: bytes) -> None:
        loading = self._state, text, ctypes.c_size_t(len(text)), b"plugin"
        failed = (self._lua.luaL_loadbuffer(*loading) if self._first else self._lua.luaL_loadbufferx(*loading, None))
        failed = failed or (
            self._lua.lua_pcall(self._state, 0, _MULTIPLE, 0) if self._first else
            self._lua.lua_pcallk(self._state, 0, _MULTIPLE, 0, ctypes.c_ssize_t(0), None))
        assert not failed, self._text(-1)

    def _text(self, index: int) -> bytes:
        length = ctypes.c_size_t()
        found = self._lua.lua_tolstring(self._state, index, ctypes.byref(length))
        return ctypes.string_at(found, length.value) if found else b""

    def call(self, function: str, *arguments: str) -> tuple[int, bytes]:
        """Return code and sentence of a function of the plugin."""
        self._lua.lua_settop(self._state, 0)
        words = b", ".join(literal(word.encode("utf-8", "surrogateescape")) for word in arguments)
        self._run(b"return " + function.encode() + b"(" + words + b")")
        code, said = self._text(1), self._text(2) if self._lua.lua_gettop(self._state) > 1 else b""
        self._lua.lua_settop(self._state, 0)
        return int(float(code)), said

    def close(self) -> None:
        self._lua.lua_close(self._state)


def literal(text: bytes) -> bytes:
    """A string of Lua, by the numbers of its bytes."""
    return b'"' + b"".join(b"\\%03d" % byte for byte in text) + b'"'
