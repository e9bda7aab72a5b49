"""torch.testing: the process group that is fake, where PyTorch's tests have it."""
