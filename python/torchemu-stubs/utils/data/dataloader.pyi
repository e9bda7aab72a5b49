"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.utils.data._collate import default_collate as default_collate
from torchemu.frontends.numpy.utils.data._collate import default_convert as default_convert
from torchemu.frontends.numpy.utils.data.dataloader import DataLoader as DataLoader
from torchemu.frontends.numpy.utils.data.dataloader import get_worker_info as get_worker_info

