import shutil

import pytest
import torch
from torch._dynamo.exc import TorchDynamoException

from sohot.training import load_run


@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")  # of the compiler about itself
def test_compiled_streams_train_to_the_same_weights_and_checkpoints_fit_both_ways(train, standin, tmp_path):
    options = {"batches": standin.RandomRows(24, 9), "method": "s+t", "steps": 6, "checkpoint_every": 3}

    def model():
        made = standin.SmallStreams()
        made.tail[3].p = 0.0
        return made

    plain = train(model(), **options)
    quick = train(model(), compile=True, run_dir=tmp_path, **options)
    assert set(plain.model.state_dict()) == set(quick.model.state_dict()) == set(load_run(tmp_path).tensors["model"])
    for name, tensor in plain.model.state_dict().items():
        torch.testing.assert_close(quick.model.state_dict()[name], tensor, rtol=1e-5, atol=1e-6)
    again = train(model(), run_dir=tmp_path, resume=True, **options)
    assert again.resumed_from == 6


def test_without_a_compiler_training_goes_on_and_says_so(train, same_weights, monkeypatch):
    def compile(*_, **__):
        raise RuntimeError("No working C++ compiler found")

    monkeypatch.setattr(torch, "compile", compile)
    with pytest.warns(UserWarning, match=r"compile: no compiler works \(No working C\+\+ compiler found\), continuing"):
        result = train(compile=True)
    assert same_weights(result.model, train().model)


def test_streams_that_cannot_be_compiled_train_as_they_are(train, standin, same_weights, monkeypatch):
    class Odd(standin.SmallStreams):
        def compile(self, **_):
            self._compiled_call_impl = self.refuse

        def refuse(self, *_, **__):
            raise TorchDynamoException("a graph of another kind")

    monkeypatch.setattr("sohot.training.trainer._no_compiler", lambda _: None)
    with pytest.warns(UserWarning, match=r"the streams cannot be compiled \(a graph of another kind\)"):
        result = train(Odd(), compile=True)
    assert same_weights(result.model, train().model)


def test_other_errors_are_not_taken_for_the_compilers(train, standin, monkeypatch):
    class Broken(standin.SmallStreams):
        def forward(self, *_, **__):
            raise ArithmeticError("something else")

    monkeypatch.setattr("sohot.training.trainer._no_compiler", lambda _: "none here")
    with pytest.raises(ArithmeticError, match="something else"), pytest.warns(UserWarning, match="none here"):
        train(Broken(), compile=True)
