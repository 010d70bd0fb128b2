"""Requests that change what tierd does, or the file system. Pausing never waits: it must work while a file moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lustre.fid import Fid
from lustre.filesystem import Filesystem
from tierd.act.gate import Gate
from tierd.act.inbox import Inbox
from tierd.act.journal import Entry, Journal
from tierd.act.orders import SUBMISSION, Intent, Order
from tierd.act.undo import Undo
from tierd.as_json import action_json
from tierd.config import Settings
from tierd.desk import views
from tierd.desk.explain import entry_json
from tierd.text import printable, quoted

CHANGING = frozenset({"pause", "drain", "resume", "undo", "promote", "demote", "submit"})
"""Their names: not everybody who may look may make them."""

Request = Mapping[str, Any]


class Changing:
    """Does what somebody asked for, or puts it into the inbox. ``made`` tells what an order comes to at present.

    ``publish`` is called after an undo, so that whoever looks next sees it; ``taken_back`` with each act that was taken
    back, and by whom; ``end_case`` with the number of a finding of which all is taken back: it returns how many moves
    were dropped.
    """

    def __init__(self, gate: Gate, undo: Undo, journal: Journal, settings: Settings, publish: Callable[[], None],
                 filesystem: Filesystem, inbox: Inbox, made: Callable[[Order], Intent],
                 taken_back: Callable[[Entry, str], None], end_case: Callable[[int, str], int]) -> None:
        self._gate = gate
        self._undo_act = undo
        self._journal = journal
        self._settings = settings
        self._publish = publish
        self._filesystem = filesystem
        self._inbox = inbox
        self._made = made
        self._taken_back = taken_back
        self._end_case = end_case
        self.requests: Mapping[str, Callable[[Request], dict[str, Any]]] = {
            "pause": self._pause, "drain": self._drain, "resume": self._resume, "undo": self._undo,
            "promote": self._order, "demote": self._order, "submit": self._submit,
        }

    def _pause(self, request: Request) -> dict[str, Any]:
        self._gate.stance.pause(printable(str(request.get("reason") or "")) or f"by {request.get('by', 'tierctl')}")
        return self._stance()

    def _drain(self, request: Request) -> dict[str, Any]:
        self._gate.stance.drain(printable(str(request.get("reason") or "")) or f"by {request.get('by', 'tierctl')}")
        return self._stance()

    def _resume(self, _: Request) -> dict[str, Any]:
        self._gate.stance.resume()
        return self._stance()

    def _stance(self) -> dict[str, Any]:
        """As it is now, and as the journal keeps it over a restart."""
        self._gate.stance.keep()
        return {**views.stance(self._gate), "waiting_moves": self._gate.waiting,
                "waiting_bytes": self._gate.waiting_bytes}

    def _undo(self, request: Request) -> dict[str, Any]:
        by = str(request.get("by", "tierctl"))
        number = request.get("id")
        if isinstance(number, str) and number[:1] in {"F", "f"} and number[1:].isascii() and number[1:].isdigit():
            return self._undo_case(int(number[1:]), by)
        if type(number) is not int:  # neither true nor 1.5 names an act
            raise ValueError(f"undo takes the number of an act (17) or of a finding (F3), not {number!r}")
        entry = self._journal.entry(number)
        if entry is None:
            raise ValueError(f"the journal has no act {number}; tierctl history lists them")
        result, detail = self._undo_act(entry, f"by {by}")
        if result == "undone":
            self._taken_back(entry, by)
        self._publish()
        return {"result": result, "detail": detail, "entry": entry_json(entry)}

    def _undo_case(self, number: int, by: str) -> dict[str, Any]:
        """Take back what was done for a finding: its moves are dropped at once, then its default layouts put back.

        Files that were moved stay where they are; their acts can be undone one by one.
        """
        done = self._journal.acts_in_force(number)
        if not done and not self._journal.has_finding(number):
            raise ValueError(f"the journal has no finding F{number}; tierctl findings and tierctl history list them")
        dropped = self._end_case(number, by)
        acts = []
        for entry in (entry for entry in done if entry.kind == "set-default-layout"):
            result, detail = self._undo_act(entry, f"by {by}")
            if result == "undone":
                self._taken_back(entry, by)
            acts.append({"result": result, "detail": detail, "entry": entry_json(entry)})
        self._publish()
        failed = [act for act in acts if act["result"] != "undone"]
        return {"result": "undone" if not failed else "not undone", "finding": number, "dropped_moves": dropped,
                "acts": acts, "moved_files": [entry.id for entry in done if entry.kind == "migrate"]}

    def _order(self, request: Request) -> dict[str, Any]:
        path = self._from_root(str(request["path"]))
        order = Order(str(request["request"]), path, str(request.get("by", "tierctl")),
                      most_files=max(1, int(request.get("most_files", 1000))),
                      most_bytes=max(1, int(request.get("most_bytes", 1 << 40))), fid=self._fid(path))
        made = self._made(order)
        if made.actions and not request.get("preview"):
            self._inbox.put([(order, made)])
        return {
            "path": order.path, "direction": order.direction, "files": len(made.actions), "size_bytes": made.size_bytes,
            "left_out": dict(made.left_out.most_common(20)), "dry_run": self._settings.act.dry_run,
            "preview": bool(request.get("preview")), "held": self._gate.stance.held or self._gate.stance.draining,
            "actions": [action_json(action) for action in made.actions[:10]],
        }

    def _fid(self, path: str) -> Fid:
        """Of what is ordered. Raises OSError or ValueError."""
        try:
            return self._filesystem.status(path).fid
        except FileNotFoundError:
            raise ValueError(f"{quoted(path)}: there is no such file or directory on the file system at "
                             f"{self._settings.filesystem.mount}") from None

    def _submit(self, request: Request) -> dict[str, Any]:
        direction = str(request.get("direction", "promote"))
        if direction not in {"promote", "demote"}:
            raise ValueError(f"direction is promote or demote, not {direction!r}")
        paths = request.get("paths")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise ValueError("submit takes a list of paths")
        by, reason = f"{request.get('by')} (submit)", printable(str(request.get("reason") or ""))
        self._inbox.put([(Order(direction, self._from_root(path), by, SUBMISSION, reason, most_files=1), None)
                         for path in paths])
        return {"accepted": len(paths), "waiting_orders": len(self._inbox)}

    def _from_root(self, path: str) -> str:
        """A path below the mount point, or one from the file system's root as in history. Raises ValueError."""
        if not path:
            raise ValueError("an empty path")
        mount = self._settings.filesystem.mount.rstrip("/")
        inner = path[len(mount):] if mount and (path + "/").startswith(mount + "/") else path
        if not inner.startswith("/") and inner:
            raise ValueError(f"{path!r}: give the whole path, below {mount} or from the root of the file system")
        inner.encode("utf-8", "surrogateescape")  # half a character is no name: a ValueError
        if {".", ".."} & set(inner.split("/")) or "\0" in inner:
            raise ValueError(f"{path!r}: a path without . and .. in it")
        return "/" + "/".join(part for part in inner.split("/") if part)
