"""What setup.cfg cannot say: modules in C that are left out where there is no compiler (docs/decisions/012)."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension("lustre._texts", ["lustre/_texts.c"], optional=True),
        Extension("lustre._records", ["lustre/_records.c"], optional=True),
        Extension("exporter._job_lines", ["exporter/_job_lines.c"], optional=True),
    ]
)
