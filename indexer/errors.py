"""Errors of the indexer's side."""


class VocabularyUnusable(Exception):
    """A vocabulary file is missing, damaged, or of a kind that tiktoken cannot express. Says which."""
