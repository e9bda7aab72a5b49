"""Models that are divided among ranks, as programs for Megatron have them. They are imported inside a run, where
``import torch`` and ``import megatron`` give what the run has under these names."""
