"""The parts of the bench ccl_bandwidth.py."""
