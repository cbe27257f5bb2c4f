"""Which fits train together."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from sohot.heads.network import Shape
from sohot.heads.stacks import Algorithm, StackKey, fit_bytes, split_stacks
from sohot.methods import HeadSettings

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def key(widths: tuple[int, int] = (20, 3), size: int = 16, method: str = "so", **options: object) -> StackKey:
    shape = Shape(size, 31, "shared", "shared", None, two_domains=True)
    return StackKey(shape, Algorithm.of(HeadSettings(method=method, **options)), torch.float32, widths)


keys = st.lists(
    st.builds(
        key,
        widths=st.sampled_from([(20, 3), (8, 3)]),
        size=st.sampled_from([4, 256]),
        method=st.sampled_from(["s+t", "so", "so+zeta"]),
        steps=st.sampled_from([10, 20]),
    ),
    max_size=20,
)


@given(given_keys=keys, memory=st.sampled_from([1, 10**6, 10**8]), device=st.sampled_from([CPU, GPU]))
def test_every_fit_is_in_one_stack_of_its_kind_within_the_memory(given_keys, memory, device):
    stacks = split_stacks(given_keys, device, memory)
    assert sorted(number for members in stacks for number in members) == list(range(len(given_keys)))
    for members in stacks:
        kinds = {given_keys[number]._replace(widths=(0, 0)) for number in members}
        assert len(kinds) == 1
        assert len(members) == 1 or sum(fit_bytes(given_keys[number]) for number in members) <= memory


def test_a_cpu_takes_few_at_a_time_and_a_gpu_all():
    many = [key(size=128)] * 60
    assert len(split_stacks(many, GPU, 10**10)) == 1
    assert len(split_stacks(many, CPU, 10**10)) > 4


def test_a_cpu_does_not_pad_small_classes_to_large_ones_and_a_gpu_does():
    mixed = [key((20, 3)), key((8, 3))]
    assert split_stacks(mixed, CPU, 10**10) == [[0], [1]]
    assert split_stacks(mixed, GPU, 10**10) == [[0, 1]]


def test_numbers_of_a_fit_do_not_keep_it_out_of_a_stack():
    base = key(sigma1=0.1, head_decay=0.0, norm_bound=1.0)
    assert base == key(sigma1=1.0, head_decay=0.1, norm_bound=2.0, seed=3, lr=0.1, target_weight=0.5)
    assert base != key(sigma1=0.1, head_decay=0.0)
    assert key(method="s+t", estimator="unbiased") == key(method="s+t")  # without alignment there is no estimator


def test_the_estimate_of_memory_is_of_the_right_size():
    whole = key(size=128)
    rows, parameters = 31 * 23 * 128 * 4, (128 * 128 + 128 + 31 * 129) * 4
    assert 8 * rows < fit_bytes(whole) - 7 * parameters < 20 * rows
