"""Functions of torch.nn.functional: operations with their derivatives, by what they are for."""
