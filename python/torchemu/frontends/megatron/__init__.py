"""megatron, as far as tensor parallelism goes. Where Megatron itself is installed, that is what programs get."""
