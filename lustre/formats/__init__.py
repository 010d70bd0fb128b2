"""Parsers of the text files of the kernel: bytes in, frozen records out. No I/O, no clock, no Prometheus.

A module is named as the kernel file it parses. header, fields, histogram, outline and compiled serve several of them.
"""
