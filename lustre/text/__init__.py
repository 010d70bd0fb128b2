"""One module per kernel text format: bytes in, frozen records out. No I/O, no clock, no Prometheus."""
