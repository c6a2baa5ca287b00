"""Runs of the engine, and the requests that wait for them."""
