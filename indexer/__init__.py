"""Foretype's indexer side: tokens now; the repository index is built on it."""
