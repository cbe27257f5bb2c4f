"""
In scikit-learn, and beside skada
=================================

`sohot.SoHoTClassifier` is a scikit-learn classifier for rows of two domains. It follows
the convention of `skada <https://scikit-adaptation.github.io/>`_: ``sample_domain`` is
positive for source rows, negative for target rows. So it works in pipelines and
searches, and methods of both libraries can be compared on the same rows.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from skada import CORAL, SubspaceAlignment
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from sohot import SoHoTClassifier
from sohot.experiments.digit_splits import draw_split
from sohot.heads import baseline

# %%
# In a pipeline and a search
# --------------------------
# The rows are pixels: 1000 printed digits as the source, 30 labelled handwritten ones
# as the target. With metadata routing, ``sample_domain`` finds its way to the
# classifier.


def rows_of(split: int) -> tuple[np.ndarray, ...]:
    """Return training rows, labels and domains, and rows and labels to test on."""
    digits = draw_split(split)
    rows = np.concatenate([digits.source.flatten(1), digits.target.flatten(1)])
    labels = np.concatenate([digits.source_labels, digits.target_labels])
    domain = np.repeat([1, -1], [len(digits.source), len(digits.target)])
    return (
        rows,
        labels,
        domain,
        digits.test.flatten(1).numpy(),
        digits.test_labels.numpy(),
    )


X, y, sample_domain, test_X, test_y = rows_of(0)
order = np.random.default_rng(0).permutation(len(y))
X, y, sample_domain = X[order], y[order], sample_domain[order]

with sklearn.config_context(enable_metadata_routing=True):
    pipeline = make_pipeline(Normalizer(), SoHoTClassifier(calibrate=False))
    search = GridSearchCV(
        pipeline, {"sohotclassifier__head_decay": [0.003, 0.03, 0.3]}, cv=2
    )
    search.fit(X, y, sample_domain=sample_domain)
print(search.best_params_, f"{search.best_estimator_.score(test_X, test_y):.1%} right")

# %%
# Several ways on the same rows
# -----------------------------
# Methods of skada are made for targets without any label: they get all target rows,
# none with a label. So does one of ours, beside the 30 labels; the others see the
# labelled rows alone. Three draws of the labelled digits:

ways = {
    "skada's CORAL": CORAL(LogisticRegression(max_iter=200)),
    "skada's SubspaceAlignment": SubspaceAlignment(
        LogisticRegression(max_iter=200), n_components=40
    ),
    "logistic regression, target rows": baseline("logistic-target"),
    "logistic regression, all rows alike": baseline("logistic-both"),
    "SoHoTClassifier": SoHoTClassifier(),
    "SoHoTClassifier with unlabelled rows": SoHoTClassifier(),
}
scores: dict[str, list[float]] = {name: [] for name in ways}
for split in range(3):
    X, y, sample_domain, test_X, test_y = rows_of(split)
    without_labels = np.full(len(test_y), -1)
    all_X = np.concatenate([X, test_X])
    all_domains = np.append(sample_domain, without_labels)
    for name, way in ways.items():
        if "skada" in name:
            labels = np.append(np.where(sample_domain < 0, -1, y), without_labels)
            way.fit(all_X, labels, sample_domain=all_domains)
        elif "unlabelled" in name:
            way.fit(all_X, np.append(y, without_labels), sample_domain=all_domains)
        else:
            way.fit(X, y, sample_domain=sample_domain)
        scores[name].append(100 * float(np.mean(way.predict(test_X) == test_y)))

figure, axes = plt.subplots(figsize=(9, 3), layout="constrained")
axes.barh(
    list(scores),
    [np.mean(values) for values in scores.values()],
    color=["0.75"] * 4 + ["#0072B2"] * 2,
)
for place, values in enumerate(scores.values()):
    axes.plot(values, [place] * 3, "k.", markersize=4)
axes.bar_label(axes.containers[0], fmt="%.1f", label_type="center", color="white")
axes.set(xlabel="accuracy on 841 digits in %; dots: the three draws", xlim=(0, 100))
axes.invert_yaxis()

# %%
# The labels of a few target rows are worth more than any adaptation without them, and
# unlabelled rows add to that. Accuracies with unlabelled rows are *transductive*:
# measured on the rows that were seen without a label.
