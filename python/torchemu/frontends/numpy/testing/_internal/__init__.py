"""Parts of PyTorch's own tests, as far as programs use them."""
