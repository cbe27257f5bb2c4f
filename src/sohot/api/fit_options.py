"""Types of the options of `sohot.fit`; written by `python docs/options.py` from their declarations."""

import os
from collections.abc import Sequence
from typing import TypedDict


class FitOptions(TypedDict, total=False):
    """All options of `sohot fit` that are not parameters of their own of `sohot.fit`."""

    split: str | os.PathLike[str] | None
    """File that lists the images to train and test on: a run's split.json, or from `sohot data split`, with the data
    set's folder as --source and --target."""
    source_shots: int | None
    """Train on at most this many random source images per class."""
    protocol: str
    """How the test relates to --unlabelled: transductive (tested on images of the pool), inductive (on images never
    seen; of rest one half is the pool, the other half the test) or auto (as the images are)."""
    leave_out: bool
    """Leave out classes that only one domain has."""
    augment: bool
    """Randomly crop and mirror training images (disables the trunk cache)."""
    heads: str
    """One classifier (shared) or one per domain (coupled)."""
    norm_bound: float | None
    """Bound τ on the squared norm of the features."""
    backbone: str
    """Network: lite0, lite1, lite2, alexnet, vgg16, resnet50, small-cnn, timm:NAME, timm:local-dir:FOLDER,
    FILE.py:function."""
    weights: str | os.PathLike[str] | None
    """File of its weights: safetensors (`sohot weights pack` makes one), or a state dict."""
    from_scratch: bool
    """Start from random weights."""
    tap: str | None
    """Where to take the features: before-relu, after-relu or output."""
    dropout: str
    """Dropout: classifier (none before alignment), everywhere or none."""
    image_size: int | None
    """Side of the images in pixels; by default the network's own."""
    channels: int
    """Channels of the target images: 3 (colour) or 1 (grey, depth)."""
    source_backbone: str | None
    """A different network for the source."""
    source_weights: str | os.PathLike[str] | None
    """File of the source network's weights."""
    source_tap: str | None
    """Where to take the source network's features."""
    source_channels: int | None
    """Channels of the source images, if different."""
    streams: str | None
    """One network for both domains (shared) or one each (separate)."""
    trains: str | None
    """Layers to train: paper (the last blocks), all, or head (none: the classifier is a logistic regression on frozen
    features)."""
    batch_norm: str
    """Batch-norm statistics: auto, fixed, moving, or both (features are means over two passes, by the network's and by
    the target images' statistics)."""
    projection: int | None
    """Project the features of both streams to this size."""
    cosine: float | None
    """Classify by direction alone: features are divided by their length, logits by this temperature."""
    method: str
    """What is aligned while both domains train: nothing (s+t), class means (means), whole domains (m) or class
    scatters (so); auto lets held-out target labels choose. All methods: s: source only; t: target only; s+t: both, no
    alignment; m: both, whole domains aligned; so: both, class scatters aligned; to: both, scatters of order 3; fo:
    both, scatters of order 4; sums of orders (so+to); +zeta learns a weight for each class. Other methods: means:
    both, class means aligned; variance: both, class spread penalised; ccsa: both, pairs pulled and pushed; dsne: both,
    nearest and farthest; dage: both, graph embedding; supcon: both, supervised contrastive; l2-sp: both, near initial
    weights; lp-ft: both, classifier first. With unlabelled images, s+t and the --pool-loss of that name: im, entropy,
    mme, mcc, fixmatch, adamatch. paper: so with the paper's published settings (its sigmas suit raw features of norm
    about 40, such as fc7 of AlexNet). auto: the best of a short list, by cross-validation on the labelled target
    images."""
    orders: int | Sequence[int] | None
    """Orders to align instead of the method's own, e.g. 2,3."""
    sigma1: float | float | Sequence[float]
    """Weight of the scatters, or one per order."""
    sigma2: float
    """Weight of the means."""
    alpha1: float
    """How strongly ζ of the scatters is pulled to 1."""
    alpha2: float
    """How strongly ζ̄ of the means is pulled to 1."""
    estimator: str
    """plugin (the paper) or unbiased."""
    feature_scale: str
    """initial, none (the paper) or unit."""
    loss_weight: float | None
    """Loss weight of a method from another paper."""
    margin: float
    """Margin of losses that push classes apart."""
    temperature: float
    """Temperature of contrastive losses."""
    l2_sp: float | None
    """Pull the weights below the classifier toward their initial values, this strongly, instead of weight decay."""
    head_first: float | None
    """Share of initial steps that train only the classifier."""
    target_weight: float | None
    """Share of the target in the cross-entropy."""
    head_decay: float | None
    """λ of λ‖W‖² on the classifier."""
    coupling: float
    """β' of β'‖W−W*‖² for coupled classifiers."""
    keep: str
    """What to keep of a pre-trained network: better (the classifier on its frozen features, unless held-out target
    images say that training layers helps) or layers (train them without this comparison)."""
    pool_loss: str | None
    """What to learn from them: pseudo: pseudo-labels; pseudo+im: pseudo-labels and information; none: alignment only;
    im: information maximisation; entropy: entropy minimisation; mme: minimax entropy; mcc: minimum class confusion;
    fixmatch: FixMatch; adamatch: AdaMatch."""
    pool_weight: float
    """Factor of the losses on unlabelled images; 0 trains as if there were none."""
    threshold: float | None
    """Least confidence of a pseudo-label, as a multiple of the mean confidence on source images; of fixmatch, a
    probability."""
    prior: str | None
    """Class shares that pseudo-labels are moved toward: estimated from the images, uniform, or none."""
    neighbours: int | None
    """How many of the most similar unlabelled images have a say in a pseudo-label."""
    teacher: float | None
    """Weight of the past in the running average of the weights, the teacher, which labels the images; 0 for the
    weights as they are. Methods with pseudo-labels keep an average of 0.99, the others the teacher."""
    ramp_up: float | None
    """Share of the steps over which the losses on unlabelled images rise from 0."""
    bank: bool
    """Align with stored features of all unlabelled images, not only with those of a batch."""
    pool_rows: int
    """Unlabelled images in a batch."""
    optimizer: str
    """sgd or adamw."""
    lr: float
    """Peak learning rate of the layers below the classifier."""
    head_factor: float
    """Learning rate of the classifier, as a multiple of --lr."""
    zeta_lr: float
    """Peak learning rate of ζ."""
    momentum: float
    """Momentum of sgd."""
    weight_decay: float
    """Weight decay of the layers below the classifier."""
    schedule: str
    """one-cycle, cosine or constant."""
    warmup: float
    """Share of the steps over which the learning rate rises."""
    seed: int
    """Random seed, also for the choice of shots."""
    clip_norm: float | None
    """Largest gradient norm; longer gradients are clipped."""
    divergence_factor: float
    """Stop above this many times the first loss (or 1)."""
    steps: int | None
    """Number of training steps."""
    epochs: int | None
    """Passes over the training images, instead of --steps."""
    batch_rows: int
    """Maximum number of images in a batch; 0 for the whole training set."""
    batch_classes: int | None
    """Classes in a batch."""
    source_per_class: int | None
    """Source images per class in a batch."""
    target_per_class: int | None
    """Target images per class in a batch."""
    pool_views: int
    """With unlabelled images: cached weak views of each image, and as many strong ones of target images; fewer if they
    do not fit. With --augment, each step makes new ones instead."""
    device: str
    """auto, cpu, cuda or mps."""
    devices: int
    """Devices of this machine that share each batch; the result is the same as on one."""
    precision: str
    """32-true, bf16-mixed, 16-mixed or 64-true; losses use float32 or better."""
    compile: bool
    """Compile the network: slower to start, faster to train on a GPU."""
    capture: bool
    """On an NVIDIA GPU, record training steps as CUDA graphs: same results, no waiting for Python."""
    checkpoint_every: int
    """Steps between checkpoints."""
    keep_checkpoints: int
    """Number of checkpoints to keep."""
    loggers: str | None
    """Log for TensorBoard besides log.csv: tensorboard or none."""
    cache: str | None
    """Where to keep the outputs of the frozen layers: device, memory, disk or off."""
    threads: int | None
    """CPU threads for computation."""
    read_threads: int | None
    """Threads that read images."""
