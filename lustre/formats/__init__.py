"""Parsers of the text files of the kernel: bytes in, frozen records out. No I/O, no clock, no Prometheus.

A module has the name of the kernel file that it parses. Several parsers share header, fields, histogram, outline and
compiled.
"""
