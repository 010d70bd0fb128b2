"""The optional C modules, which setup.cfg cannot declare. Without a compiler they are omitted (docs/decisions/012)."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension("lustre._files", ["lustre/_files.c", "lustre/formats/marks.c"], optional=True),
        Extension("lustre.formats._texts", ["lustre/formats/_texts.c", "lustre/formats/marks.c"], optional=True),
        Extension("exporter.jobs._lines", ["exporter/jobs/_lines.c"], optional=True),
    ]
)
