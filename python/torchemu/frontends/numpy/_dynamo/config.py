"""torch._dynamo.config: programs may set anything here; nothing changes."""
