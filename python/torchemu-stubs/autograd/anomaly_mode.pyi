"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.autograd.anomaly_mode import detect_anomaly as detect_anomaly
from torchemu.frontends.numpy.autograd.anomaly_mode import set_detect_anomaly as set_detect_anomaly

