"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.distributed.elastic.multiprocessing.errors import ChildFailedError as ChildFailedError
from torchemu.frontends.numpy.distributed.elastic.multiprocessing.errors import ProcessFailure as ProcessFailure
from torchemu.frontends.numpy.distributed.elastic.multiprocessing.errors import record as record

