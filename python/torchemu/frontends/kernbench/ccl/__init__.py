"""kernbench.ccl: the configuration of collectives."""
