"""Word to systemd: that we are ready, what we are doing, and that we still live (``Type=notify``, ``WatchdogSec=``)."""

from __future__ import annotations

import socket
from collections.abc import Mapping


class Notifier:
    """Sends to the socket systemd names in the environment; does nothing without one."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = "\0" + address[1:] if address.startswith("@") else address

    def __call__(self, **states: str) -> None:
        """For instance ``READY="1", STATUS="…"``. What cannot be sent is not worth dying for."""
        if not self._address:
            return
        message = "\n".join(f"{name}={value}" for name, value in states.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
                to.sendto(message.encode(), self._address)
        except OSError:
            return
