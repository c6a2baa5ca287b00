"""Answers without the model, and guesses that spare it steps."""
