"""A job's small files or small I/O slow another job's stream on shared targets.

All of these must hold:

* the victim streams, and its throughput on the shared targets is below its own normal range;
* the aggressor does small I/O, or works on whole small files, and causes a fair part of the load on these targets;
* the victim had its normal speed before the aggressor came, and has been slow in most windows since;
* the aggressor's operations can cost the targets that much time: a few operations do not slow a disk;
* the targets are healthy: not degraded, not in recovery, not full.

The published loss is 20-30% (Cray, CUG 2018). The threshold here is 15%: single windows of an undisturbed stream vary
by 10% in recordings.
"""
