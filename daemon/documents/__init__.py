"""Open buffers: positions and encodings."""
