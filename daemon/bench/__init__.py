"""Measurements a user can run on their own machine."""
