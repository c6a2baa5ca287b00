"""One file per command; the only printing and exiting."""
