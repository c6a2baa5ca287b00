"""Foretype's daemon: doors, context, engine client and polish. See README.md."""

__version__ = "0.1.0"
