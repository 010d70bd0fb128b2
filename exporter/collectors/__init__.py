"""Everything that is collected, one module each, listed by hand in the order the exposition follows."""

from exporter.collector import Collector
from exporter.collectors import (
    extents,
    filesystem,
    jobs,
    llite,
    mdc,
    mdt,
    osc,
    ost,
    page_cache,
    pools,
    read_ahead,
)

COLLECTORS: tuple[Collector, ...] = (
    llite.COLLECTOR,
    read_ahead.COLLECTOR,
    extents.COLLECTOR,
    page_cache.COLLECTOR,
    filesystem.COLLECTOR,
    osc.COLLECTOR,
    mdc.COLLECTOR,
    pools.COLLECTOR,
    ost.COLLECTOR,
    mdt.COLLECTOR,
    jobs.COLLECTOR,
)
