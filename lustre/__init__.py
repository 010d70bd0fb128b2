"""What Lustre says, and how to ask it for something. Standard library only."""

__version__ = "0.1.0"
