"""kernbench.policy.placement: where data lies."""
