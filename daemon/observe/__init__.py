"""Counters that say what happened, never what the source said."""
