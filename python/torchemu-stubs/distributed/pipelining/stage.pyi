"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.pipelining.stage import PipelineStage as PipelineStage

