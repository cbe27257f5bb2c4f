"""Which fits train together."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from sohot.heads.network import Shape
from sohot.heads.planning import Algorithm, Plan, chunks, fit_bytes
from sohot.methods import HeadSettings

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def plan(widths: tuple[int, int] = (20, 3), size: int = 16, method: str = "so", **options: object) -> Plan:
    shape = Shape(size, 31, "shared", "shared", None, two_domains=True)
    return Plan(shape, Algorithm.of(HeadSettings(method=method, **options)), torch.float32, widths)


plans = st.lists(
    st.builds(
        plan,
        widths=st.sampled_from([(20, 3), (8, 3)]),
        size=st.sampled_from([4, 256]),
        method=st.sampled_from(["s+t", "so", "so+zeta"]),
        steps=st.sampled_from([10, 20]),
    ),
    max_size=20,
)


@given(given_plans=plans, memory=st.sampled_from([1, 10**6, 10**8]), device=st.sampled_from([CPU, GPU]))
def test_every_fit_is_in_one_stack_of_its_kind_within_the_memory(given_plans, memory, device):
    stacks = chunks(given_plans, device, memory)
    assert sorted(number for members in stacks for number in members) == list(range(len(given_plans)))
    for members in stacks:
        kinds = {given_plans[number]._replace(widths=(0, 0)) for number in members}
        assert len(kinds) == 1
        assert len(members) == 1 or sum(fit_bytes(given_plans[number]) for number in members) <= memory


def test_a_cpu_takes_few_at_a_time_and_a_gpu_all():
    many = [plan(size=128)] * 60
    assert len(chunks(many, GPU, 10**10)) == 1
    assert len(chunks(many, CPU, 10**10)) > 4


def test_a_cpu_does_not_pad_small_classes_to_large_ones_and_a_gpu_does():
    mixed = [plan((20, 3)), plan((8, 3))]
    assert chunks(mixed, CPU, 10**10) == [[0], [1]]
    assert chunks(mixed, GPU, 10**10) == [[0, 1]]


def test_numbers_of_a_fit_do_not_keep_it_out_of_a_stack():
    base = plan(sigma1=0.1, head_decay=0.0, norm_bound=1.0)
    assert base == plan(sigma1=1.0, head_decay=0.1, norm_bound=2.0, seed=3, lr=0.1, target_weight=0.5)
    assert base != plan(sigma1=0.1, head_decay=0.0)
    assert plan(method="s+t", estimator="unbiased") == plan(method="s+t")  # without alignment there is no estimator


def test_the_estimate_of_memory_is_of_the_right_size():
    whole = plan(size=128)
    rows, parameters = 31 * 23 * 128 * 4, (128 * 128 + 128 + 31 * 129) * 4
    assert 8 * rows < fit_bytes(whole) - 7 * parameters < 20 * rows
