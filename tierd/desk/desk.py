"""What the daemon answers to tierctl and to the page: by name, to looking or to changing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from typing import Any

from tierd.desk.changing import Changing
from tierd.desk.looking import Looking
from tierd.text import quoted


class Desk:
    """Answers requests about a daemon, from any thread."""

    def __init__(self, looking: Looking, changing: Changing) -> None:
        self._requests = {**looking.requests, **changing.requests}

    def __call__(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Answer one. Raises ValueError for what is not known, or cannot be."""
        name = request.get("request")
        answer = self._requests.get(str(name))
        if answer is None:
            raise ValueError(f"unknown request {name!r}; known: {', '.join(sorted(self._requests))}")
        try:
            return answer(request)
        except (TypeError, KeyError, OverflowError) as error:  # the last: a number no journal has
            raise ValueError(f"{name}: the request is not as it should be: {error!r}") from error
        except OSError as error:
            about = f"{quoted(os.fsdecode(error.filename))}: " if error.filename else ""
            raise ValueError(f"{name}: {about}{error.strerror or error}") from error
        except sqlite3.Error as error:
            raise ValueError(f"{name}: the journal: {error}; journalctl -u tierd says what tierd does about it"
                             ) from error
