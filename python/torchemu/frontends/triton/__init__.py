"""The stand-in for Triton; what programs import is in face."""
