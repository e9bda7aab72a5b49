"""Recordings of what a run did in simulated time."""
