"""Errors of the indexer's side."""


class VocabularyUnusable(Exception):
    """A vocabulary file is missing, damaged, or of a kind that tiktoken cannot express. Says which."""


class IndexDamaged(Exception):
    """The database cannot be used: damaged, foreign, or of a newer version. Says which; it is rebuilt."""


class ParseBudgetExceeded(Exception):
    """A parse took longer than its wall-clock budget."""


class NestingTooDeep(ParseBudgetExceeded):
    """Brackets nest beyond the cap; the file is not parsed at all (SkipReason `depth`)."""


class RootUnavailable(Exception):
    """The root is not there or cannot be read; the last good state stays."""


class IndexUnwritable(Exception):
    """The database cannot be written: disk full, read-only, or no permission. The last good state stays."""


class IndexBlocked(Exception):
    """Another process holds the write lock, or a reader's old snapshot keeps the log from being emptied.
    Nothing was lost; try again later. Says which."""
