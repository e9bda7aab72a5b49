"""torch.utils: what many programs need. Its modules are imported by their names, as torch.utils.checkpoint is."""
