"""kernbench.policy: how work and data are laid out."""
