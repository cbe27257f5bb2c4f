"""The classifier of directions: what it ignores, and that a whole model with it works as any other."""

import pytest
import torch
from torch import Tensor

from sohot.networks import TwoStreams, create_backbone
from sohot.networks.cosine import CosineClassifier


def images(rows: int = 5) -> Tensor:
    return torch.rand(rows, 3, 16, 16, generator=torch.Generator().manual_seed(rows))


def build(cosine: float | None = 0.05, **options: object) -> TwoStreams:
    torch.manual_seed(0)
    return TwoStreams(create_backbone("small-cnn", size=16), 3, cosine=cosine, **options)


def test_only_the_direction_of_features_counts() -> None:
    torch.manual_seed(0)
    classifier, rows = CosineClassifier(6, 3, temperature=0.1), torch.randn(4, 6)
    torch.testing.assert_close(classifier(rows), classifier(100 * rows))
    expected = (rows / rows.norm(dim=1, keepdim=True) @ classifier.weight.T + classifier.bias) / 0.1
    torch.testing.assert_close(classifier(rows), expected)


def test_features_of_zero_have_a_gradient() -> None:
    rows = torch.zeros(2, 6, requires_grad=True)
    CosineClassifier(6, 3, temperature=0.05)(rows).sum().backward()
    assert rows.grad is not None
    assert rows.grad.isfinite().all()


@pytest.mark.parametrize("options", [{}, {"streams": "separate", "heads": "coupled"}, {"norm_bound": 0.5}])
def test_what_is_kept_after_training_answers_as_the_model_does(options: dict[str, object]) -> None:
    model = build(**options)
    torch.testing.assert_close(model.target_only()(images()), model.predict(images()))
    again = build(**options)
    again.load_state_dict(model.state_dict())
    assert again.predict(images()).equal(model.predict(images()))


def test_a_linear_classifier_draws_the_same_weights() -> None:
    linear, cosine = build(cosine=None), build()
    for name, tensor in linear.state_dict().items():
        assert tensor.equal(cosine.state_dict()[name]), name


def test_features_are_classified_as_in_a_forward_pass() -> None:
    model = build().eval()
    output = model(images(4), images())
    for domain in ("source", "target"):
        features, logits = getattr(output, f"{domain}_features"), getattr(output, f"{domain}_logits")
        torch.testing.assert_close(model.classify(features, domain), logits)


@pytest.mark.parametrize(("cosine", "message"), [(0, "cosine must be above 0, got 0: pass None"), (-1, "at least 0")])
def test_bad_temperatures_are_refused(cosine: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(cosine=cosine)
