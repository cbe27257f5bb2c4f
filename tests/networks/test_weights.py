import pickle
import socket
import time

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from sohot._torchvision import import_torchvision
from sohot.networks import create_backbone, weights
from sohot.networks.weights import fill, read_weights


@pytest.fixture
def state():
    return {"weight": torch.arange(6.0).view(2, 3), "bias": torch.ones(2)}


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[key], right[key]) for key in left)


def test_both_formats_are_read_whatever_the_name(state, tmp_path):
    save_file(state, tmp_path / "a.bin")
    torch.save(state, tmp_path / "b.safetensors")
    torch.save(state, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    for name in ("a.bin", "b.safetensors", "old.pth"):
        assert same(read_weights(tmp_path / name), state)


@pytest.mark.parametrize("wrapping", ["state_dict", "model", "model_state_dict"])
def test_wrappings_are_removed(state, tmp_path, wrapping):
    torch.save({wrapping: {f"module.{key}": value for key, value in state.items()}, "epoch": 3}, tmp_path / "w.pth")
    assert same(read_weights(tmp_path / "w.pth"), state)


class Evil:
    ran = False

    def __reduce__(self):
        return (setattr, (Evil, "ran", True))


@pytest.mark.parametrize("new", [True, False])
def test_a_pickle_is_refused_and_does_not_run(tmp_path, new):
    torch.save({"weight": torch.ones(1), "evil": Evil()}, tmp_path / "w.pth", _use_new_zipfile_serialization=new)
    (tmp_path / "bare.pkl").write_bytes(pickle.dumps(Evil(), protocol=2))
    with pytest.raises(ValueError, match=r"w\.pth: the file holds pickled objects besides tensors.*refused"):
        read_weights(tmp_path / "w.pth")
    with pytest.raises(ValueError, match=r"bare\.pkl.*refused"):
        read_weights(tmp_path / "bare.pkl")
    assert not Evil.ran


def test_damaged_and_missing_files_are_named(state, tmp_path):
    save_file(state, tmp_path / "a.safetensors")
    torch.save(state, tmp_path / "b.pth")
    for name in ("a.safetensors", "b.pth"):
        whole = (tmp_path / name).read_bytes()
        for length in (0, 1, 10, len(whole) // 2, len(whole) - 1):
            (tmp_path / name).write_bytes(whole[:length])
            with pytest.raises(ValueError, match=rf"weights .*{name}: .*damaged"):
                read_weights(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"weights .*none\.pth: there is no such file"):
        read_weights(tmp_path / "none.pth")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        read_weights(tmp_path)


def test_a_file_without_a_state_dict_is_named(tmp_path):
    torch.save([torch.ones(1)], tmp_path / "list.pth")
    with pytest.raises(ValueError, match=r"list\.pth: expected a state dict \(tensors by name\), got list"):
        read_weights(tmp_path / "list.pth")


def test_keys_that_do_not_fit_are_named(state):
    with pytest.raises(ValueError, match=r"do not fit the backbone net: 1 \(bias\) missing, 1 \(odd\) unexpected"):
        fill(nn.Linear(3, 2), {"weight": state["weight"], "odd": state["bias"]}, "f", "net")
    with pytest.raises(ValueError, match=r"weight has shape \(2, 3\), expected \(2, 4\)"):
        fill(nn.Linear(4, 2), state, "f", "net")


def test_classifier_and_counters_may_be_missing_or_differ():
    network = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(3, 2))
    given = {key: value + 1 for key, value in network[0].state_dict().items() if key != "num_batches_tracked"}
    fill(network, {f"0.{key}": value for key, value in given.items()} | {"1.other": torch.ones(9)}, "f", "net", ("1.",))
    assert torch.equal(network[0].running_mean, torch.ones(2))


def test_half_precision_files_give_full_precision_networks(state):
    network = nn.Linear(3, 2)
    fill(network, {key: value.half() for key, value in state.items()}, "f", "net")
    assert network.weight.dtype == torch.float32
    assert torch.equal(network.weight, state["weight"])


@pytest.fixture
def silent_server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch, tmp_path, silent_server):
    monkeypatch.setattr(weights, "PATIENCE", 0.2)
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path))
    entry = import_torchvision().models.AlexNet_Weights.IMAGENET1K_V1
    monkeypatch.setattr(entry.value, "url", f"{silent_server}/alexnet-12345678.pth", raising=False)
    before = time.monotonic()
    with pytest.raises(ConnectionError, match=r"^the pre-trained weights of alexnet .* \(.*timed out.*\): give a file"):
        create_backbone("alexnet")
    assert time.monotonic() - before < 5
    assert socket.getdefaulttimeout() is None


def test_a_failed_download_says_what_to_do(monkeypatch):
    def fail(*_args, **_kwargs):
        raise OSError("no route to host")

    hub = import_torchvision().models._api
    monkeypatch.setattr(hub, "load_state_dict_from_url", fail)
    with pytest.raises(
        ConnectionError, match=r"weights of alexnet .* \(no route to host\): give a file with --weights FILE"
    ):
        create_backbone("alexnet")
    with pytest.raises(ConnectionError, match=r"resnet50 .*--from-scratch"):
        create_backbone("resnet50")


def test_downloads_are_read_as_tensors_alone(monkeypatch):
    asked = {}

    def answer(_url, **settings):
        asked.update(settings)
        return import_torchvision().models.resnet50(weights=None).state_dict()

    monkeypatch.setattr(import_torchvision().models._api, "load_state_dict_from_url", answer)
    assert create_backbone("resnet50", size=64).pretrained
    assert asked["weights_only"] is True


def test_a_backbone_takes_its_own_weights_back(tmp_path):
    first = create_backbone("small-cnn", channels=1)
    save_file(first.state_dict(), tmp_path / "cnn.safetensors")
    second = create_backbone("small-cnn", channels=1, weights=tmp_path / "cnn.safetensors")
    assert same(first.state_dict(), second.state_dict())
    assert second.pretrained
