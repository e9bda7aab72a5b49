"""torch.distributed.elastic: of torchrun's own parts, those that programs use."""
