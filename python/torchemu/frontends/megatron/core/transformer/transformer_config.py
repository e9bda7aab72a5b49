"""megatron.core.transformer.transformer_config."""

from torchemu.tp.config import TransformerConfig as TransformerConfig
