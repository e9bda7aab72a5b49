"""Process groups, stores and works as c10d defines them, without any front end's tensors."""
