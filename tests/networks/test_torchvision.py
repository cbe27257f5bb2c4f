import subprocess
import sys

from sohot._torchvision import import_torchvision


def test_torchvision_comes_with_its_models():
    torchvision = import_torchvision()
    assert import_torchvision() is torchvision
    assert callable(torchvision.models.resnet50)


def test_streams_stay_light_until_a_network_is_asked_for():
    code = "import sys, sohot.networks; print([m for m in ('torchvision', 'timm') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
