"""The servers of :mod:`tests.tierd.cluster.broker`, for every test here."""

from __future__ import annotations

from tests.tierd.cluster.broker import own_broker as own_broker
from tests.tierd.cluster.broker import shared_broker as shared_broker
