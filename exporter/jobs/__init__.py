"""Job statistics: ``obdfilter.*.job_stats``, ``mdt.*.job_stats``."""
