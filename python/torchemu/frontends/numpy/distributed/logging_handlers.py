"""torch.distributed.logging_handlers: where messages of this package go."""

import logging

_log_handlers: dict[str, logging.Handler] = {"default": logging.NullHandler()}
