import pytest
import standin
import torch

from sohot.data import BalancedBatches
from sohot.methods import FitSettings
from sohot.training import Inputs, TensorInputs, predict_logits
from sohot.training.fabric import make_fabric
from sohot.training.inputs import Domain, WholeSet
from sohot.training.ranks import Ranks
from sohot.training.trainer import Trainer

LABELS = torch.tensor([0, 0, 0, 1, 2])


def test_fingerprints_tell_data_apart():
    x = torch.randn(6, 2)
    prints = [TensorInputs(y).fingerprint() for y in (x, x.clone(), x + 1, x.double(), x[:5], x.reshape(6, 2, 1))]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 5


def test_what_counts_as_inputs():
    assert isinstance(TensorInputs(torch.zeros(2, 2)), Inputs)
    assert not isinstance([1, 2], Inputs)
    with pytest.raises(TypeError, match="floating-point tensor"):
        TensorInputs(torch.zeros(2, 2, dtype=torch.int64))


def test_prediction_does_not_depend_on_the_batch_size():
    model = standin.SmallStreams().train()
    inputs = TensorInputs(standin.problem()[0])
    one, other = (predict_logits(model, inputs, batch_size=size) for size in (5, 100))
    torch.testing.assert_close(one, other)
    assert model.training
    assert predict_logits(model, inputs, from_trunk=True).equal(other)
    with pytest.raises(ValueError, match="inputs is empty"):
        predict_logits(model, TensorInputs(torch.zeros(0, 4)))
    with pytest.raises(ValueError, match="batch_size must be at least 1"):
        predict_logits(model, inputs, batch_size=0)


class Drawing(TensorInputs):
    """Inputs that say what they draw, and show it."""

    def draw(self, rows):
        return torch.rand(rows, 2)

    def batch(self, rows, drawn):
        return super().batch(rows) * 0 + drawn


@pytest.fixture
def read_step():
    """Read a step as one of several ranks does; also what it would draw next."""

    def read(ranks, inputs, step=3):
        data = Domain("source", inputs, [0] * 5, 1), Domain("target", inputs, [0] * 5, 1)
        settings = FitSettings(method="s+t", steps=9, device="cpu", loggers="none", seed=4)
        trainer = Trainer(make_fabric(settings), standin.SmallStreams(), *data, WholeSet(5, 5), settings)
        trainer.ranks = ranks
        found = trainer._read(step)
        trainer.close()
        return [shown.inputs for _, shown in found if shown is not None], torch.rand(1)

    return read


@pytest.mark.parametrize(
    ("batches", "expected"), [(WholeSet(5, 5), 6), (BalancedBatches(LABELS, LABELS, 3, None, 2, 1), 3)]
)
def test_the_alignment_learns_how_many_rows_a_class_has_at_most(batches, expected):
    domains = (Domain(name, TensorInputs(torch.zeros(5, 2)), LABELS, 3) for name in ("source", "target"))
    settings = FitSettings(method="so", steps=1, device="cpu", loggers="none")
    trainer = Trainer(make_fabric(settings), standin.SmallStreams(), *domains, batches, settings)
    assert trainer.objective.alignment.most_rows == expected
    trainer.close()


def test_ranks_share_what_is_drawn_for_a_batch(read_step):
    inputs = Drawing(torch.zeros(5, 2))
    by_count = []
    for count in (2, 3):
        shown, after = zip(*(read_step(Ranks(count, own), inputs) for own in range(count)), strict=True)
        by_count.append([torch.cat(parts) for parts in zip(*shown, strict=True)])
        assert len({float(one) for one in after}) == count  # dropout is each rank's own
    assert all(one.equal(other) for one, other in zip(*by_count, strict=True))
    source, target = by_count[0]
    assert not source.equal(target)
    assert not source.equal(read_step(Ranks(2, 0), inputs, step=4)[0][0])


def test_one_rank_draws_from_torchs_generator(read_step):
    found = []
    for seed in (8, 8, 9):
        torch.manual_seed(seed)
        found.append(read_step(Ranks(), Drawing(torch.zeros(5, 2)))[0])
    assert found[0][0].equal(found[1][0])
    assert not found[0][0].equal(found[0][1])
    assert not found[0][0].equal(found[2][0])
