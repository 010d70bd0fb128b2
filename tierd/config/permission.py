"""Who may use tierctl: names of the configuration, looked up on this machine when it is read."""

from __future__ import annotations

import grp
import pwd
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import AfterValidator

from tierd.service.peers import Access


def user_number(name: str) -> int:
    """Number of a user. Raises ValueError for one this machine does not know.

    >>> user_number("root"), user_number("1500")
    (0, 1500)
    """
    try:
        return int(name) if name.isdigit() else pwd.getpwnam(name).pw_uid
    except KeyError:
        raise ValueError(f"this machine knows no user {name!r}") from None


def group_number(name: str) -> int | None:
    """Number of a group; None for no group. Raises ValueError for one this machine does not know.

    >>> group_number(""), group_number("root")
    (None, 0)
    """
    try:
        return (int(name) if name.isdigit() else grp.getgrnam(name).gr_gid) if name else None
    except KeyError:
        raise ValueError(f"this machine knows no group {name!r}") from None


def known_user(name: str) -> str:
    """The name. Raises ValueError for one this machine does not know."""
    user_number(name)
    return name


def known_group(name: str) -> str:
    """The name. Raises ValueError for one this machine does not know."""
    group_number(name)
    return name


@dataclass(frozen=True)
class Control:
    """Who may use tierctl, besides root and the user tierd runs as: by what the kernel says of the other side."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    read_group: Annotated[str, AfterValidator(known_group)] = ""
    """Name or number of a group whose members may look: status, top, findings, history, explain, plan, advise…"""
    change_users: tuple[Annotated[str, AfterValidator(known_user)], ...] = ()
    """Names or numbers of users who may pause, drain, resume, undo, promote, demote and submit as well."""

    @property
    def access(self) -> Access:
        """The same in numbers."""
        return Access(group_number(self.read_group), frozenset(map(user_number, self.change_users)))
