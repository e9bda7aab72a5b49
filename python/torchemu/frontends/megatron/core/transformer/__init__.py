"""megatron.core.transformer: its configuration."""

from torchemu.tp.config import TransformerConfig as TransformerConfig
