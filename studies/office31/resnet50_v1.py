"""ResNet-50 in its first form: stride 2 in the first 1×1 convolution of a stage, batch normalisation with ε = 0.001.

    sohot fit … --backbone studies/office31/resnet50_v1.py:resnet50_v1 --weights resnet50_v1_fp16.safetensors

For weights that were trained this way, such as those of Keras, with torchvision's tensor names. (torchvision's own
weights have the stride in the 3×3 convolution: for them use the backbone `resnet50`, which downloads them.)
"""

from torch import nn

from sohot._torchvision import import_torchvision  # works even if torchvision's own operators cannot be loaded


def resnet50_v1() -> nn.Module:
    """Build the network; its weights come from a file."""
    network: nn.Module = import_torchvision().models.resnet50(weights=None)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps = 1e-3
    for stage in (network.layer2, network.layer3, network.layer4):
        stage[0].conv1.stride, stage[0].conv2.stride = (2, 2), (1, 1)
    return network
