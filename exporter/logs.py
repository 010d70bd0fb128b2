"""Logging of the exporter to standard error, as plain text, logfmt or JSON, like other exporters."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from lustre.journald import JournalFormatter, to_journal

LEVELS = ("debug", "info", "warn", "error")
FORMATS = ("text", "logfmt", "json")
_NAMES = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warn", logging.ERROR: "error"}


class StructuredFormatter(logging.Formatter):
    """One line of logfmt or JSON per record: time, level, message."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {"ts": when, "level": _NAMES.get(record.levelno, record.levelname.lower()),
                  "msg": record.getMessage()}  # fmt: skip
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        if self._form == "json":
            return json.dumps(fields)
        return " ".join(f"{name}={quoted(value)}" for name, value in fields.items())


def quoted(value: str) -> str:
    r"""Quote a value for logfmt.

    >>> print(quoted("info"), quoted('a "b"'))
    info "a \"b\""
    """
    plain = value and value.isprintable() and not set(value) & {" ", "=", '"'}
    return value if plain else json.dumps(value, ensure_ascii=False)


def configure_logging(level: str, form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    lines = logging.Formatter("lustre-exporter: %(message)s") if form == "text" else StructuredFormatter(form)
    handler.setFormatter(JournalFormatter(lines) if to_journal() else lines)
    root = logging.getLogger()
    for former in [one for one in root.handlers if one.get_name() == __name__]:
        root.removeHandler(former)
    handler.set_name(__name__)
    root.addHandler(handler)
    root.setLevel(getattr(logging, "WARNING" if level == "warn" else level.upper()))
