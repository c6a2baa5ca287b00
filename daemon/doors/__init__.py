"""How requests come in and answers go out, one file per dialect."""
