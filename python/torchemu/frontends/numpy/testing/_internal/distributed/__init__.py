"""What PyTorch's own tests are made of, as far as programs use it."""
