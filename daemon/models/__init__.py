"""Model files: catalogue, pull, verify, fit."""
