"""What PyTorch has in torch.nn and torch.optim, and torchemu has not."""

INSTEAD = "of torch.nn and torch.optim only what is used most is there"

MODULES = (
    "AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool1d "
    "AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout "
    "Bilinear CTCLoss ChannelShuffle "
    "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d "
    ""
    "CrossMapLRN2d EmbeddingBag FeatureAlphaDropout Fold "
    "FractionalMaxPool2d FractionalMaxPool3d GaussianNLLLoss "
    ""
    "LPPool1d LPPool2d LPPool3d LazyBatchNorm1d LazyBatchNorm2d "
    "LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d "
    "LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear "
    "LocalResponseNorm MaxUnpool1d MaxUnpool2d "
    "MaxUnpool3d MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss "
    "NLLLoss2d PixelShuffle PixelUnshuffle PoissonNLLLoss "
    "RReLU ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d "
    "ReplicationPad2d ReplicationPad3d "
    ""
    "TripletMarginWithDistanceLoss "
    "Unfold UninitializedBuffer UninitializedParameter Upsample UpsamplingBilinear2d UpsamplingNearest2d "
    "ZeroPad1d ZeroPad2d ZeroPad3d "
)

FUNCTIONS = (
    "adaptive_max_pool1d "
    "adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices "
    "adaptive_max_pool3d adaptive_max_pool3d_with_indices affine_grid alpha_dropout "
    "bilinear celu_ "
    "channel_shuffle conv_tbc "
    "ctc_loss elu_ "
    "embedding_bag feature_alpha_dropout fold fractional_max_pool2d fractional_max_pool2d_with_indices "
    "fractional_max_pool3d fractional_max_pool3d_with_indices gaussian_nll_loss grid_sample "
    "grouped_mm gumbel_softmax hardtanh_ "
    "interpolate leaky_relu_ "
    "local_response_norm lp_pool1d lp_pool2d lp_pool3d "
    "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
    "max_unpool1d max_unpool2d max_unpool3d multi_head_attention_forward multi_margin_loss "
    "multilabel_margin_loss multilabel_soft_margin_loss native_channel_shuffle "
    "pdist pixel_shuffle pixel_unshuffle poisson_nll_loss relu_ rrelu "
    "rrelu_ scaled_grouped_mm scaled_mm selu_ "
    "threshold_ triplet_margin_with_distance_loss "
    "unfold upsample upsample_bilinear upsample_nearest "
)

INITIAL_VALUES = (
    "constant dirac dirac_ kaiming_normal kaiming_uniform normal orthogonal sparse sparse_ "
    "uniform xavier_normal xavier_uniform "
)

OF_PARAMETERS = (
    "clip_grad_norm convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format "
    "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights "
    "remove_spectral_norm remove_weight_norm skip_init spectral_norm weight_norm "
)

PARALLEL = "DistributedDataParallelCPU "

OPTIMIZERS = "SparseAdam "
