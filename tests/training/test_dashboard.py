"""What TensorBoard is given, and (``-m browser``) what it shows of it in headless Chromium."""

import copy
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2

from rlgames.agents import Eager
from rlgames.build import load, settle
from rlgames.features.ntuples import NTuples
from rlgames.games.tictactoe import TicTacToe
from rlgames.networks.table import ValueNetwork
from rlgames.optim import TDL
from rlgames.training.dashboard import LAYOUT, choices, sentence
from rlgames.training.records import step_share
from tests.support import RULES

PROXY = urllib.request.ProxyHandler({})  # the server is on this machine


def test_the_sentence_of_a_run():
    assert sentence(load()) == (
        "Connect4 → NTuples → ValueNetwork → TD → TCLEXP → 500,000 games → Evaluation against the best player"
    )
    cfg = load("+experiment=tictactoe_q")
    settle(cfg)
    assert sentence(cfg) == "TicTacToe → Q → 20,000 games → Exhaustive"


def test_choices_hold_what_people_vary_and_nothing_else():
    found = choices(load("optimizer=idbd", "seed=3", "optimizer.theta=2"))
    assert {"game": "Connect4", "optimizer": "IDBD", "optimizer.theta": 2, "seed": 3, "games": 500_000}.items() <= (
        found.items()
    )
    assert not {key for key in found if "dir" in key or "_target_" in key or "opponent" in key}
    assert choices(load("optimizer=tdl"))["learner.lr"] == "Exponential"


def test_events_hold_layout_card_boards_and_final_figures(quick):
    folder = quick()
    events = EventAccumulator(str(folder)).Reload()
    tags = events.Tags()
    assert {"run/text_summary", "configuration/text_summary", "sample_game/text_summary"} <= set(tags["tensors"])
    card = events.Tensors("run/text_summary")[0].tensor_proto.string_val[0].decode()
    assert card.startswith("**TicTacToe → NTuples")
    assert [event.step for event in events.Images("boards")] == [4, 8, 12]
    assert events.Images("boards")[0].width > 900  # four boards
    assert {"Final/success_first"} == {tag for tag in tags["scalars"] if tag.startswith("Final")}
    assert events.Scalars("Final/success_first")[0].value == events.Scalars("evaluation/success_first")[-1].value


def test_every_margin_chart_has_its_three_tags_and_layout_is_read_back(quick):
    events = EventAccumulator(str(quick())).Reload()
    content = events.SummaryMetadata("custom_scalars__config__")
    assert content.plugin_data.plugin_name == "custom_scalars"
    layout = layout_pb2.Layout()
    layout.ParseFromString(events.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    assert [category.title for category in layout.category] == list(LAYOUT)
    scalars = set(events.Tags()["scalars"])
    for charts in LAYOUT.values():
        for kind, names in charts.values():
            if kind == "Margin":
                assert set(names) <= scalars


# ---- in a browser

TEXT = """
const found = [];
(function walk(node) {
    if (['STYLE', 'SCRIPT', 'NOSCRIPT'].includes(node.nodeName)) return;
    if (node.nodeType === 3 && node.textContent.trim()) found.push(node.textContent.trim());
    if (node.shadowRoot) walk(node.shadowRoot);
    node.childNodes.forEach(walk);
})(document.body);
return found.join('\\n');
"""
COUNT = """
let count = 0;
(function walk(node) {
    if (node.nodeType === 1 && node.matches(arguments_[0])) count += 1;
    if (node.shadowRoot) walk(node.shadowRoot);
    node.childNodes.forEach(walk);
})(document.body);
return count;
""".replace("arguments_[0]", "SELECTOR")
PAGES = {  # page: texts it must show, and an element of which it must have some
    "custom_scalars": (
        ["learning", "speed", "step sizes", "games", "success", "Matches (2)"],
        "plottable-axis,svg,canvas",
    ),
    "scalars": (["evaluation", "optimizer", "train", "success_first"], "svg,canvas"),
    "images": (["boards", "step"], "img"),
    "histograms": (["optimizer/step_size"], "svg path"),
    "text": (["TicTacToe → NTuples", "sample_game", "_target_: rlgames.optim.tcl.TCLEXP"], "p,pre"),
    "hparams": (
        ["optimizer.lr", "TCLEXP", "IDBD", "Final/success_first"],
        "vaadin-grid,tr,table,tf-hparams-table-view",
    ),
}


@pytest.fixture(scope="module")
def tensorboard(tmp_path_factory):
    """The address of a TensorBoard on two runs."""
    from rlgames.train import train
    from tests.support import QUICK

    folder = tmp_path_factory.mktemp("dashboard")
    for name, rule in (("a", "tcl_exp"), ("b", "idbd")):
        words = ["games=200", "eval_every=50", "evaluation.first=10", "evaluation.second=10"]
        train(load(*QUICK, *words, f"optimizer={rule}", f"run_dir={folder / name}"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "tensorboard.main",
        "--logdir",
        str(folder),
        "--port",
        str(port),
        "--load_fast=false",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(120):
            try:
                if b"a" in urllib.request.build_opener(PROXY).open(f"{address}/data/runs", timeout=5).read():
                    break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("needs chromium and chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("headless=new", "no-sandbox", "disable-gpu", "no-proxy-server", "window-size=1400,1000"):
        options.add_argument(f"--{word}")
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()


@pytest.mark.browser
@pytest.mark.parametrize("page", PAGES)
def test_pages_show_data(tensorboard, browser, page):
    """Set RLGAMES_PICTURES to a folder to keep a picture of each page."""
    texts, selector = PAGES[page]
    browser.get("about:blank")
    browser.get(f"{tensorboard}/#{page}")
    missing = texts
    for _ in range(60):
        shown = browser.execute_script(TEXT)
        missing = [text for text in texts if text not in shown]
        if not missing:
            break
        time.sleep(0.5)
    assert not missing, shown
    assert "No dashboards are active" not in shown
    assert browser.execute_script(COUNT.replace("SELECTOR", repr(selector))) > 0
    if os.environ.get("RLGAMES_PICTURES"):
        time.sleep(3)
        browser.save_screenshot(str(Path(os.environ["RLGAMES_PICTURES"]) / f"{page}.png"))


def test_the_share_of_its_error_that_a_step_takes_off_a_board():
    """A linear unit and one step size: what the step changes of the value, divided by the error."""
    game = TicTacToe()
    network = ValueNetwork(NTuples(game, [[0, 1, 2], [0, 4, 8]], states=3), "identity", dtype="float64")
    optimizer, board = TDL(network.parameters(), lr=0.01), game.play("15")
    (share,) = step_share(network, optimizer, [board]).values()
    before = network.value(board).item()
    network(network.indices(board)).sum().backward()
    optimizer.step(delta=0.5)
    assert share == pytest.approx((network.value(board).item() - before) / 0.5)
    assert share > 0.01 * network.features.n_features, "of the mirror images of a board some coincide"
    assert step_share(network, torch.optim.SGD(network.parameters(), lr=0.1), [board]) == {}


@pytest.mark.parametrize("name", RULES)
def test_the_share_is_that_of_a_step_really_made(name):
    """Whatever a rule normalises by, and whatever its unit is; weights and state are as after two steps before."""
    game, (cls, hyper, unit) = TicTacToe(), RULES[name]
    network = ValueNetwork(NTuples(game, [[0, 1, 2], [0, 4, 8]], states=3), unit, init=0.1, dtype="float64")
    optimizer, board, delta = cls(network.parameters(), **hyper | {"lr": 0.01}), game.play("15"), 0.05
    agent = Eager(network, optimizer)
    for target in (0.5, 0.6):
        agent.learn(board, target)
    before = network.value(board).item()
    saved = copy.deepcopy((network.state_dict(), optimizer.state_dict()["state"]))
    (share,) = step_share(network, optimizer, [board], delta).values()
    torch.testing.assert_close((network.state_dict(), optimizer.state_dict()["state"]), saved, rtol=0, atol=0)
    agent.learn(board, before + delta)
    assert share == pytest.approx((network.value(board).item() - before) / delta, rel=1e-9)
    assert abs(share) < 20, "a step does not take off the error many times"
