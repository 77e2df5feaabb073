"""docs/optimizers.md keeps its word: every block runs, and what the text says of it holds."""

import re

import pytest
import torch

import rlgames.optim
from rlgames.build import CONF
from rlgames.optim import IDBD, TCL, TDL, StepSize
from tests.support import OPTIMIZERS, PROJECT, RULES

TEXT = (PROJECT / "docs" / "optimizers.md").read_text(encoding="utf-8")
BLOCKS = [
    (section.partition("\n")[0], code)
    for section in TEXT.split("\n## ")[1:]
    for code in re.findall(r"```python\n(.*?)```", section, re.DOTALL)
]
WANTED = torch.tensor([[1.0, -2.0, 0.0, 0.5, 3.0]])


def run(title, k=0):
    """The names that block ``k`` of the section ``title`` leaves."""
    names = {}
    torch.manual_seed(0)
    exec([code for section, code in BLOCKS if section == title][k], names)
    return names


def test_the_sections_are_there():
    titles = [title for title, _ in BLOCKS]
    assert titles == [
        "One example at a time",
        "Temporal differences",
        *["Minibatches"] * 2,
        "Two heads",
        "A learning-rate scheduler",
        "Parameter groups",
        "Gradient clipping",
        "Saving and loading",
        "Tables and dense layers together",
        "Logistic units",
        "What is refused",
    ]


@pytest.mark.parametrize(("title", "k"), [("One example at a time", 0), ("Minibatches", 0), ("Minibatches", 1)])
def test_a_regression_is_learned(title, k):
    torch.testing.assert_close(run(title, k)["layer"].weight, WANTED, rtol=0, atol=0.01)


def test_temporal_differences_learn_the_discounted_end():
    names = run("Temporal differences")
    values = [names["value"](state).item() for state in range(6)]
    assert values == pytest.approx([0.9**k for k in (5, 4, 3, 2, 1, 0)], abs=0.02)


@pytest.mark.thorough
def test_two_heads_learn_two_tasks():
    names = run("Two heads")
    hidden = torch.tanh(names["trunk"](torch.tensor([0.25, 0.5])))
    assert [head(hidden).item() for head in names["heads"]] == pytest.approx([0.75, -0.25], abs=0.1)


def test_a_scheduler_scales_the_steps():
    names = run("A learning-rate scheduler")
    assert names["optimizer"].param_groups[0]["lr"] == pytest.approx(0.05 * 0.99**50)
    (sentence,) = re.findall(r"Rules that learn a step size for each weight \((.*?);", TEXT.replace("\n", " "))
    told = {
        "the three TIDBDs": {"TIDBD", "OrdinaryTIDBD", "AutoTIDBD"},
        "Rprop": {c for c in dir(rlgames.optim) if "prop" in c},
    }
    named = set().union(*(told.get(word, {word}) for word in sentence.split(", ")))
    rules = {cls for cls in vars(rlgames.optim).values() if isinstance(cls, type) and issubclass(cls, StepSize)}
    starts = {cls.__name__ for cls in rules - {StepSize} if cls([torch.nn.Parameter(torch.zeros(1))]).lr_is_start}
    assert {name for name in named if name != "rprop"} == starts


def test_groups_have_their_own():
    groups = run("Parameter groups")["optimizer"].param_groups
    assert [(group["lr"], group["theta"]) for group in groups] == [(0.1, 0.01), (0.02, 0.0)]


def test_clipping_bounds_the_step():
    """α = 0.1, error 1, norm of the gradient 1."""
    names = run("Gradient clipping")
    grads = torch.cat([param.grad.flatten() for param in names["layer"].parameters()])
    assert grads.norm().item() == pytest.approx(1.0, rel=1e-4)


def test_a_saved_optimizer_goes_on():
    names = run("Saving and loading")
    for layer, optimizer in ((names["layer"], names["optimizer"]), (names["other"], names["resumed"])):
        optimizer.zero_grad()
        layer(torch.ones(5)).squeeze().backward()
        optimizer.step(-0.25)
    assert torch.equal(names["layer"].weight, names["other"].weight)
    before, after = (state["state"][0]["h"] for state in (names["snapshot"], names["optimizer"].state_dict()))
    assert not torch.equal(before, after)


def test_tables_and_dense_layers_learn_together():
    names = run("Tables and dense layers together")
    assert abs(1.0 - names["value"].item()) < 0.2
    moved = names["optimizer"].state[names["table"].weight]["v"].any(1).nonzero().flatten()
    assert moved.tolist() == [7, 42]


def test_a_logistic_unit_learns_which_input_is_larger():
    layer = run("Logistic units")["layer"]
    x = torch.randn(1000, 3)
    assert ((layer(x).squeeze(1) > 0) == (x[:, 0] > x[:, 1])).float().mean() > 0.95


def test_divergence_is_answered(capsys):
    names = run("What is refused")
    assert capsys.readouterr().out.startswith("IDBD diverged, lower lr or theta: with delta ")
    assert torch.isfinite(names["layer"].weight).all()


# ---- the minibatch recipe


def single_changes(rule, xs, deltas, **hyper):
    """What each example would change by itself, from the same weights: of the weights, and the first of the state."""
    found = []
    for x, delta in zip(xs, deltas, strict=True):
        weight = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
        optimizer = rule([weight], **hyper)
        weight.grad = x.clone()
        optimizer.step(delta)
        found.append((weight.detach() - 1, next(iter(optimizer.state[weight].values()), None)))
    return found


def folded_change(rule, xs, deltas, mean, **hyper):
    weight = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))
    optimizer = rule([weight], **hyper)
    products = deltas * (xs @ weight)
    (products.mean() if mean else products.sum()).backward()
    optimizer.step(1.0)
    return weight.detach() - 1, next(iter(optimizer.state[weight].values()), None)


XS = torch.tensor([[1.0, 0.0, 2.0], [0.5, -1.0, 0.0], [0.0, 0.25, -1.0], [1.0, 1.0, 1.0]], dtype=torch.float64)
DELTAS = torch.tensor([0.5, -0.25, 1.0, -0.125], dtype=torch.float64)


@pytest.mark.parametrize("mean", [True, False])
def test_a_minibatch_of_tdl_is_the_sum_or_mean_of_its_examples(mean):
    singles = torch.stack([change for change, _ in single_changes(TDL, XS, DELTAS, lr=0.25)])
    change, _ = folded_change(TDL, XS, DELTAS, mean, lr=0.25)
    torch.testing.assert_close(change, singles.mean(0) if mean else singles.sum(0))
    weight = torch.nn.Parameter(torch.ones(3, dtype=torch.float64))  # or by the loss
    loss = (DELTAS + (XS @ torch.ones(3, dtype=torch.float64)) - XS @ weight).square() / 2
    (loss.mean() if mean else loss.sum()).backward()
    TDL([weight], lr=0.25).step(-1.0)
    torch.testing.assert_close(weight.detach() - 1, change)


def test_a_minibatch_of_tcl_counts_what_the_batch_recommends():
    singles = single_changes(TCL, XS, DELTAS, lr=0.25)
    change, N = folded_change(TCL, XS, DELTAS, False, lr=0.25)
    torch.testing.assert_close(change, sum(change for change, _ in singles))  # the first step: all factors are 1
    torch.testing.assert_close(N, sum(N for _, N in singles))


def test_a_minibatch_is_not_for_idbd():
    """h decays by the square of the gradient, in which the errors are now."""
    weights = []
    for folded in (True, False):
        weight = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
        optimizer = IDBD([weight], lr=0.5, theta=0.5)
        for delta in (0.5, 0.25):
            weight.grad = torch.full((1,), delta if folded else 1.0, dtype=torch.float64)
            optimizer.step(1.0 if folded else delta)
        weights.append(optimizer.state[weight]["h"].item())
    assert abs(weights[0] - weights[1]) > 0.05


# ---- the table of defaults


def test_the_table_names_the_defaults_and_those_of_the_yamls():
    """Numbers of the constructor and of conf/optimizer, as far as the table has them, are those of the code."""
    (rows,) = re.findall(r"^\| rule \| constructor .*\n(?:\|.*\n)+", TEXT, re.MULTILINE)
    table = {row[0].strip(): (row[1], row[3]) for row in (line.split("|")[1:-1] for line in rows.splitlines())}
    of = {
        "TDL": ["tdl"], "TCL, TCL[δ]": ["tcl", "tcl_delta"], "TCL-EXP, TCL-PL": ["tcl_exp", "tcl_pl"],
        "IDBD, TIDBD, ordinary TIDBD": ["idbd", "tidbd", "tidbd_ordinary"], "IDBD-nl": ["idbd_nl"], "SMD": ["smd"],
        "K1": ["k1"], "Autostep": ["autostep"], "AutoTIDBD": ["auto_tidbd"], "alpha-bounds": ["alpha_bounds"],
    }  # fmt: skip
    for title, names in of.items():
        general, connect4 = (
            [float(n) for n in re.findall(r"(?<![\w.])\d*\.?\d+", cell.replace(",000", "000"))] for cell in table[title]
        )
        for name in names:
            cls, hyper, _ = RULES[name]
            defaults = cls([torch.nn.Parameter(torch.zeros(1))]).defaults
            numbers = [key for key, value in hyper.items() if not isinstance(value, bool)]
            assert [defaults[key] for key in numbers] == general, name
            assert [hyper[key] for key in numbers][: len(connect4)] == connect4[: len(numbers)], name


def test_every_yaml_names_its_source():
    for name in OPTIMIZERS:
        comments = re.findall(r"# (.*)", (CONF / "optimizer" / f"{name}.yaml").read_text(encoding="utf-8"))
        assert re.search(r"\d{4}|authors' (program|package)|torch's values|those of|that of", " ".join(comments)), name
