"""Front ends: the packages that programs import, over the process groups and device programs of torchemu."""
