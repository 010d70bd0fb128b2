"""A job's small files or small I/O slow another job's stream on the targets they share.

The signature, all of it at once:

* the victim streams, and its throughput on the shared targets is below its own normal range;
* the aggressor does small I/O, or works on whole small files, on the same targets, and makes a fair part of their
  load;
* the victim had its normal speed before the aggressor came, and has been slow in most windows since;
* the aggressor's work can cost the targets that much time: a few operations do not make a disk slow;
* the targets are not slow for a reason of their own (degraded, in recovery, full).

The published loss is 20-30% (Cray, CUG 2018). The threshold here is 15%: single windows of an undisturbed stream vary
by 10% in recordings. ``profile`` and ``attribution`` are beside this package, as other detectors use them too.
"""
