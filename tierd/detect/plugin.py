"""Names of the protocol, for the modules that are to move."""

from tierd.detect.view import View
from tierd.policies.protocol import Common
from tierd.policies.protocol import Policy as Detector

__all__ = ["Common", "Detector", "View"]
