"""What the tests of the installed PyTorch have in common. Their modules are loaded again in each rank."""
