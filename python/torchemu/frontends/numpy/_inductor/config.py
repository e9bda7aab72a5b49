"""torch._inductor.config: programs may set anything here; nothing changes."""
