"""megatron.core.transformer: its configuration."""

from torchemu.tp import TransformerConfig as TransformerConfig
