"""What can be set, and how it is read: ``Settings``, and ``load``, which tells all mistakes of a file at once."""

from tierd.config.load import ConfigurationError, load, parse
from tierd.config.settings import Settings

__all__ = ["ConfigurationError", "Settings", "load", "parse"]
