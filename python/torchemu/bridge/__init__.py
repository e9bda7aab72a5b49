"""The Go core, as Python calls it: its functions, handles of its objects, and Ctrl-C during its long calls."""
