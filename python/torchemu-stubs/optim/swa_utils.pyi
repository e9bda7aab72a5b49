"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.optim.swa_utils import AveragedModel as AveragedModel
from torchemu.frontends.numpy.optim.swa_utils import SWALR as SWALR
from torchemu.frontends.numpy.optim.swa_utils import get_ema_avg_fn as get_ema_avg_fn
from torchemu.frontends.numpy.optim.swa_utils import get_ema_multi_avg_fn as get_ema_multi_avg_fn
from torchemu.frontends.numpy.optim.swa_utils import get_swa_avg_fn as get_swa_avg_fn
from torchemu.frontends.numpy.optim.swa_utils import get_swa_multi_avg_fn as get_swa_multi_avg_fn
from torchemu.frontends.numpy.optim.swa_utils import update_bn as update_bn

