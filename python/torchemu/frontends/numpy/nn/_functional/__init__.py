"""What torch.nn.functional has: operations with their derivatives, by what they are for."""
