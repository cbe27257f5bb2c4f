import runpy

import pytest
import torch
from real_data import WEIGHTS
from skimage import data as photos

from sohot._torchvision import import_torchvision
from sohot.networks import create_backbone

FILE = """
import torch
from torch import nn
from sohot.data.input_spec import InputSpec
from sohot.networks import Backbone

class Net(nn.Module):
    def __init__(self, channels=3, classes=7):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Conv2d(4, 6, 3), nn.AdaptiveAvgPool2d(1))
        self.classifier = nn.Linear(6, classes)
    def forward(self, x):
        return self.classifier(self.body(x).flatten(1))

def plain(): return Net()
def grey(): return Net(channels=1)
def declared():
    net = Net()
    net.input_spec = InputSpec(20, (0.1, 0.2, 0.3), (1.0, 1.0, 1.0), 24)
    return net
def asked(pretrained=True):
    net = Net()
    nn.init.constant_(net.body[0].bias, 5.0 if pretrained else 1.0)
    return net
def ready(): return Backbone("x", [nn.Conv2d(1, 2, 3), nn.Flatten()], InputSpec(8, (0.5,), (0.5,), 8), paper=1)
def resnet():
    from sohot._torchvision import import_torchvision
    return import_torchvision().models.resnet18(weights=None)
def nothing(): return 3
def fails(): raise KeyError("oops")
number = 3
"""


def real_resnet():
    """A file with a real pre-trained ResNet-50 and its function, where there is one."""
    return WEIGHTS / "resnet50_v1.py"


@pytest.mark.skipif(not real_resnet().is_file(), reason="no resnet50_v1.py in $SOHOT_WEIGHTS or ../shared/weights")
def test_a_real_resnet_sees_a_cat_through_its_stages():
    backbone = create_backbone(f"{real_resnet()}:resnet50_v1").eval()
    assert backbone.pretrained
    assert backbone.feature_size == 2048
    assert backbone.first_trainable == {"all": 0, "paper": 15, "head": 17}
    whole = runpy.run_path(str(real_resnet()))["resnet50_v1"]()
    image = torch.from_numpy(photos.chelsea()).permute(2, 0, 1)[None] / 255
    image = torch.nn.functional.interpolate(image, (224, 336), mode="bilinear", antialias=True)[..., 56:280]
    mean, std = (torch.tensor(numbers).view(3, 1, 1) for numbers in (backbone.input.mean, backbone.input.std))
    with torch.no_grad():
        features = backbone((image - mean) / std)
        torch.testing.assert_close(whole.fc(features), whole((image - mean) / std), rtol=1e-4, atol=1e-4)
        assert whole.fc(features).argmax() in (281, 282, 285)  # ImageNet: tabby, tiger cat, Egyptian cat


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "nets.py"
    path.write_text(FILE)
    return path


def test_the_classifier_is_removed_and_the_rest_split(file):
    backbone = create_backbone(f"{file}:plain", size=16)
    assert backbone.feature_size == 6
    assert len(backbone.stages) == 2
    assert backbone.input.mean == (0.485, 0.456, 0.406)
    assert create_backbone(f"{file}:plain").input.size == 224


def test_networks_like_those_of_torchvision_are_split_in_blocks(file):
    backbone = create_backbone(f"{file}:resnet", size=64).eval()
    assert len(backbone.stages) == 9
    assert backbone.feature_size == 512
    assert backbone.first_trainable == {"all": 0, "paper": 7, "head": 9}
    assert not backbone.pretrained  # its batch normalisation has seen nothing
    whole = import_torchvision().models.resnet18(weights=None)
    assert sum(p.numel() for p in backbone.parameters()) == sum(p.numel() for p in whole.parameters()) - 513_000


def test_input_is_declared_or_seen(file):
    assert create_backbone(f"{file}:declared").input.size == 20
    grey = create_backbone(f"{file}:grey", channels=1, size=16)
    assert grey.input.channels == 1
    with pytest.raises(ValueError, match="channels=3: this network accepts images of 1 channel"):
        create_backbone(f"{file}:grey", size=16)


def test_a_backbone_is_taken_as_it_is(file):
    backbone = create_backbone(f"{file}:ready", channels=1)
    assert backbone.first_trainable["paper"] == 1
    assert backbone.name == f"{file}:ready"
    with pytest.raises(ValueError, match=r"channels=3: backbone .* accepts images of 1 channels"):
        create_backbone(f"{file}:ready")


@pytest.mark.parametrize(("pretrained", "bias"), [(True, 5.0), (False, 1.0)])
def test_the_function_is_told_whether_trained_weights_are_wanted(file, pretrained, bias):
    backbone = create_backbone(f"{file}:asked", pretrained=pretrained, size=16)
    assert next(p for p in backbone.parameters() if p.dim() == 1)[0] == bias


def test_weights_from_a_file(file, tmp_path):
    source = create_backbone(f"{file}:plain", size=16)
    layers = {
        f"body.{2 * place}.{name}": value
        for place, stage in enumerate(source.stages)
        for name, value in (("weight", stage[0].weight), ("bias", stage[0].bias))
    }
    torch.save({key: value.detach() for key, value in layers.items()}, tmp_path / "weights.pth")
    loaded = create_backbone(f"{file}:plain", weights=tmp_path / "weights.pth", size=16)
    images = torch.randn(1, 3, 16, 16)
    assert torch.equal(loaded(images), source(images))


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("missing", ValueError, "has no function 'missing'"),
        ("number", ValueError, "has no function 'number'"),
        ("nothing", TypeError, "must return a torch.nn.Module, got int"),
        ("fails", ValueError, "the function failed: KeyError: 'oops'"),
    ],
)
def test_bad_functions_are_named(file, function, error, message):
    with pytest.raises(error, match=message):
        create_backbone(f"{file}:{function}")


def test_bad_files_are_named(file, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none\.py"):
        create_backbone(f"{tmp_path}/none.py:f")
    file.write_text("def f(:")
    with pytest.raises(ValueError, match=r"nets\.py cannot be imported: SyntaxError"):
        create_backbone(f"{file}:f")


def test_from_scratch_needs_a_function_that_can(file):
    with pytest.raises(ValueError, match="to start from scratch, the function needs an argument named 'pretrained'"):
        create_backbone(f"{file}:plain", pretrained=False, size=16)
