"""The stand-in for mori; what programs import is in face."""
