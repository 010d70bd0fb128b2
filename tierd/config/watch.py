"""Whether the configuration or a drop-in beside it has changed, so that it is read again without anybody's doing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tierd.config.toml_files import drop_in_folder
from tierd.inotify import CONFIGURATION, InotifyError, Watcher


class ConfigurationWatch:
    """Watches the folder of the file and that of its drop-ins. Where that cannot be, it says so once, and never knows.

    A reload by hand (SIGHUP) works either way.
    """

    def __init__(self, path: Path, watcher: Callable[[], Watcher], say: Callable[[str], None]) -> None:
        self._path = Path(os.path.abspath(path))
        self._drop_ins = drop_in_folder(self._path)
        self._watcher: Watcher | None = None
        try:
            self._watcher = watcher()
            self._watcher.add(str(self._path.parent), CONFIGURATION)
        except InotifyError as error:
            say(f"{error}; the configuration is read again by hand only: systemctl reload tierd")
        self._add_drop_ins()

    def changed(self) -> bool:
        """Whether something that is read has changed since the last call. When events were lost, it may have."""
        if self._watcher is None:
            return False
        events, lost = self._watcher.take()
        relevant = bool(lost)
        for event in events:
            if event.folder == str(self._path.parent) and event.name == self._drop_ins.name:
                self._add_drop_ins()
                relevant = True
            elif event.folder == str(self._path.parent):
                relevant |= event.name == self._path.name
            else:
                relevant |= event.name.endswith(".toml") and not event.name.startswith(".")
        return relevant

    def close(self) -> None:
        """Stop watching."""
        if self._watcher is not None:
            self._watcher.close()

    def _add_drop_ins(self) -> None:
        if self._watcher is not None and self._drop_ins.is_dir():
            try:
                self._watcher.add(str(self._drop_ins), CONFIGURATION)
            except InotifyError:
                return  # gone again, or closed to us: the parent tells when it is made anew
