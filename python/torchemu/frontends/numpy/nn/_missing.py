"""What PyTorch has in torch.nn and torch.optim, and torchemu has not."""

INSTEAD = "of torch.nn and torch.optim only what is used most is there"

MODULES = "AdaptiveLogSoftmaxWithLoss CrossMapLRN2d FractionalMaxPool2d FractionalMaxPool3d "

FUNCTIONS = (
    "conv_tbc fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d "
    "fractional_max_pool3d_with_indices grouped_mm multi_head_attention_forward native_channel_shuffle pdist "
    "scaled_grouped_mm scaled_mm "
)

INITIAL_VALUES = (
    "constant dirac dirac_ kaiming_normal kaiming_uniform normal orthogonal sparse sparse_ uniform xavier_normal "
    "xavier_uniform "
)

OF_PARAMETERS = (
    "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format fuse_conv_bn_eval "
    "fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights "
)

PARALLEL = "DistributedDataParallelCPU"

OPTIMIZERS = "SparseAdam"
