import shutil

import pytest
import standin
import torch

from sohot.training import load_run


@pytest.mark.skipif(not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")  # of the compiler about itself
def test_compiled_streams_train_to_the_same_weights_and_checkpoints_fit_both_ways(train, tmp_path):
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


@pytest.mark.filterwarnings("ignore:.*Unable to find a suitable")
def test_without_a_compiler_training_goes_on_and_says_so(train, same_weights, monkeypatch, tmp_path):
    from torch._inductor import config  # slow to import

    torch.compiler.reset()
    monkeypatch.setattr(config.cpp, "cxx", (None, "no-such-compiler"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    with pytest.warns(UserWarning, match=r"compile: the network cannot be compiled here \(.*No working C\+\+ compiler"):
        result = train(compile=True)
    assert same_weights(result.model, train().model)


def test_other_errors_are_not_taken_for_the_compilers(train):
    class Broken(standin.SmallStreams):
        def forward(self, *_, **__):
            raise ArithmeticError("something else")

    with pytest.raises(ArithmeticError, match="something else"):
        train(Broken(), compile=True)
