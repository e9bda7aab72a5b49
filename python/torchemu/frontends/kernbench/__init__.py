"""kernbench, as far as collective benches use it."""
