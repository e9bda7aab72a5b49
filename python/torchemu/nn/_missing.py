"""What PyTorch has in torch.nn and torch.optim, and torchemu has not."""

INSTEAD = "of torch.nn and torch.optim only what is used most is there"

MODULES = (
    "AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool1d "
    "AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout BCELoss "
    "BCEWithLogitsLoss Bilinear CELU CTCLoss ChannelShuffle "
    "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d "
    "CosineEmbeddingLoss CosineSimilarity "
    "CrossMapLRN2d DataParallel Dropout1d Dropout2d Dropout3d ELU EmbeddingBag FeatureAlphaDropout Fold "
    "FractionalMaxPool2d FractionalMaxPool3d GLU GRU GRUCell GaussianNLLLoss Hardshrink "
    "Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss "
    "KLDivLoss LPPool1d LPPool2d LPPool3d LSTM LSTMCell LazyBatchNorm1d LazyBatchNorm2d "
    "LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d "
    "LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d LazyLinear LeakyReLU "
    "LocalResponseNorm LogSigmoid MarginRankingLoss MaxUnpool1d MaxUnpool2d "
    "MaxUnpool3d Mish MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss "
    "NLLLoss2d PReLU PairwiseDistance PixelShuffle PixelUnshuffle PoissonNLLLoss RNN RNNBase RNNCell "
    "RNNCellBase RReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d "
    "ReplicationPad2d ReplicationPad3d SELU SmoothL1Loss SoftMarginLoss Softmax2d Softmin Softshrink "
    "Softsign Tanhshrink Threshold Transformer TransformerDecoder TransformerDecoderLayer "
    "TripletMarginLoss TripletMarginWithDistanceLoss Unflatten "
    "Unfold UninitializedBuffer UninitializedParameter Upsample UpsamplingBilinear2d UpsamplingNearest2d "
    "ZeroPad1d ZeroPad2d ZeroPad3d "
)

FUNCTIONS = (
    "adaptive_max_pool1d "
    "adaptive_max_pool1d_with_indices adaptive_max_pool2d adaptive_max_pool2d_with_indices "
    "adaptive_max_pool3d adaptive_max_pool3d_with_indices affine_grid alpha_dropout "
    "bilinear binary_cross_entropy binary_cross_entropy_with_logits celu celu_ "
    "channel_shuffle conv_tbc "
    "cosine_embedding_loss cosine_similarity ctc_loss dropout1d dropout2d dropout3d elu elu_ "
    "embedding_bag feature_alpha_dropout fold fractional_max_pool2d fractional_max_pool2d_with_indices "
    "fractional_max_pool3d fractional_max_pool3d_with_indices gaussian_nll_loss glu grid_sample "
    "grouped_mm gumbel_softmax hardshrink hardsigmoid hardswish hardtanh hardtanh_ "
    "hinge_embedding_loss huber_loss interpolate kl_div leaky_relu leaky_relu_ "
    "local_response_norm logsigmoid lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss "
    "max_pool1d_with_indices max_pool2d_with_indices max_pool3d_with_indices "
    "max_unpool1d max_unpool2d max_unpool3d mish multi_head_attention_forward multi_margin_loss "
    "multilabel_margin_loss multilabel_soft_margin_loss native_channel_shuffle normalize "
    "pairwise_distance pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu6 relu_ rrelu "
    "rrelu_ scaled_grouped_mm scaled_mm selu selu_ smooth_l1_loss soft_margin_loss softmin softshrink "
    "softsign tanhshrink threshold threshold_ triplet_margin_loss triplet_margin_with_distance_loss "
    "unfold upsample upsample_bilinear upsample_nearest "
)

INITIAL_VALUES = (
    "constant dirac dirac_ kaiming_normal kaiming_uniform normal orthogonal orthogonal_ sparse sparse_ "
    "uniform xavier_normal xavier_uniform "
)

OF_PARAMETERS = (
    "clip_grad_norm convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format "
    "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights "
    "remove_spectral_norm remove_weight_norm skip_init spectral_norm weight_norm "
)

PARALLEL = "DistributedDataParallelCPU data_parallel gather parallel_apply replicate scatter "

OPTIMIZERS = "ASGD Adadelta Adafactor Adagrad Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SparseAdam "

SCHEDULES = "ChainedScheduler CosineAnnealingWarmRestarts CyclicLR OneCycleLR PolynomialLR ReduceLROnPlateau "
