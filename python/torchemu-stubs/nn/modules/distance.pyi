"""Names for type checkers; written by python/build_backend/stubs.py."""


from torchemu.frontends.numpy.nn.modules.distance import BCELoss as BCELoss
from torchemu.frontends.numpy.nn.modules.distance import BCEWithLogitsLoss as BCEWithLogitsLoss
from torchemu.frontends.numpy.nn.modules.distance import CosineEmbeddingLoss as CosineEmbeddingLoss
from torchemu.frontends.numpy.nn.modules.distance import CosineSimilarity as CosineSimilarity
from torchemu.frontends.numpy.nn.modules.distance import HingeEmbeddingLoss as HingeEmbeddingLoss
from torchemu.frontends.numpy.nn.modules.distance import HuberLoss as HuberLoss
from torchemu.frontends.numpy.nn.modules.distance import KLDivLoss as KLDivLoss
from torchemu.frontends.numpy.nn.modules.distance import MarginRankingLoss as MarginRankingLoss
from torchemu.frontends.numpy.nn.modules.distance import PairwiseDistance as PairwiseDistance
from torchemu.frontends.numpy.nn.modules.distance import SmoothL1Loss as SmoothL1Loss
from torchemu.frontends.numpy.nn.modules.distance import SoftMarginLoss as SoftMarginLoss
from torchemu.frontends.numpy.nn.modules.distance import TripletMarginLoss as TripletMarginLoss

