"""llama.cpp in a child process, and the parent side of it."""
