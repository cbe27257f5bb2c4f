import re

import pytest

from sohot.methods import METHOD_NAMES, OTHER_NAMES, POOL_NAMES, FitSettings, HeadSettings, method
from sohot.methods.pool_recipes import ON_FEATURES, PRIORS, RECIPES


@pytest.mark.parametrize(
    ("name", "domains", "orders", "scope", "weights"),
    [
        ("s", "s", (), None, None),
        ("t", "t", (), None, None),
        ("s+t", "st", (), None, None),
        ("m", "st", (2,), "marginal", None),
        ("so", "st", (2,), "class", None),
        ("to", "st", (3,), "class", None),
        ("fo", "st", (4,), "class", None),
        ("so+zeta", "st", (2,), "class", "learned"),
        ("to+zeta", "st", (3,), "class", "learned"),
        ("so+to+zeta", "st", (2, 3), "class", "learned"),
        ("so+to+fo+zeta", "st", (2, 3, 4), "class", "learned"),
        ("so+fo", "st", (2, 4), "class", None),
    ],
)
def test_each_method_is_what_its_name_says(name, domains, orders, scope, weights):
    found = method(name)
    assert found.name == name
    assert (found.uses_source, found.uses_target) == ("s" in domains, "t" in domains)
    assert (found.orders, found.scope, found.class_weights) == (orders, scope, weights)


def test_all_names_of_the_paper_are_known():
    assert [method(name).name for name in METHOD_NAMES] == list(METHOD_NAMES)


@pytest.mark.parametrize(("written", "meant"), [("SO+ζ", "so+zeta"), ("to + so", "so+to"), ("T+S", "s+t")])
def test_spelling_does_not_matter(written, meant):
    assert method(written) == method(meant)


def test_any_orders_by_option():
    assert method("so+zeta", orders=[2, 5]).orders == (2, 5)
    assert method("m", orders=(2, 3)).scope == "marginal"


@pytest.mark.parametrize("name", ["", "so+so", "so+s", "zeta", "m+zeta", "so+zeta+zeta", "fourth"])
def test_unknown_names_are_refused(name):
    with pytest.raises(ValueError, match="method must be one of s, t,"):
        method(name)


def test_orders_need_a_method_that_aligns():
    with pytest.raises(ValueError, match=r"orders=\(2,\) needs a method that aligns"):
        method("s+t", orders=(2,))
    with pytest.raises(ValueError, match="at least 2"):
        method("so", orders=(1,))


@pytest.mark.parametrize("name", POOL_NAMES)
def test_a_method_of_the_pool_is_both_domains_with_its_recipe(name):
    found, both = method(name), method("s+t")
    assert found.needs_pool
    assert found.pool == name
    assert (found.uses_source, found.uses_target, found.scope, found.loss) == (True, True, None, None)
    assert found.ignored() == both.ignored()
    assert FitSettings(method=name).pool_recipe() == FitSettings(method="so", pool_loss=name).pool_recipe()


def test_only_methods_of_the_pool_need_one():
    assert not any(method(name).needs_pool for name in (*METHOD_NAMES, *OTHER_NAMES))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_recipes_are_within_the_ranges_of_the_options(recipe):
    given = {name: getattr(recipe, name) for name in ("threshold", "prior", "neighbours", "teacher", "ramp_up")}
    assert FitSettings(pool_loss=recipe.name, **given).pool_recipe() == recipe
    assert recipe.prior in PRIORS
    assert recipe.view in ("weak", "strong")
    assert recipe.label


@pytest.mark.parametrize("name", POOL_NAMES)
def test_methods_of_the_pool_need_images(name):
    with pytest.raises(ValueError, match=f"method '{name}' trains layers on unlabelled images") as refused:
        HeadSettings(method=name)
    if name in ON_FEATURES:
        assert str(refused.value).endswith(f"on features use method 's+t' with pool_loss='{name}'")
        assert HeadSettings(method="s+t", pool_loss=name).pool_loss == name


@pytest.mark.parametrize("name", [name for name in RECIPES if name not in ON_FEATURES])
def test_recipes_that_need_images_are_refused_on_features(name):
    sentence = f"pool_loss must be one of im, entropy, mcc on features, got '{name}'"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        HeadSettings(pool_loss=name)


def test_the_prior_on_features_is_part_of_the_loss():
    with pytest.raises(ValueError, match="prior must be estimated or uniform on features"):
        HeadSettings(prior="none")
    assert HeadSettings().used_prior() == HeadSettings(prior="estimated").used_prior()
