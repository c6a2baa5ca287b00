"""Generation → text that an editor may show."""
