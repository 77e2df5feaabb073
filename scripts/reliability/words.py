"""Generated command lines: every key of every program with values of the wrong type, out of range, and legal ones."""

import functools
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from omegaconf import OmegaConf

from reliability.cases import Case, FoundError
from reliability.processes import Done, Lab, command_line
from rlgames.build import CONF, FOR_GAMES, load

NUMBER = 200  # of lines by default
LIMIT = 60.0  # seconds
HUGE = "1000000000"  # a program may work on so much for as long as it likes, but may not take the memory at once
WRONG, RANGE, EDGE = "wrong type", "out of range", "legal edge"
VALUES: dict[type, dict[str, tuple[str, ...]]] = {
    bool: {WRONG: ("maybe", "[1,2]", "2"), RANGE: ("null", "-1"), EDGE: ("true", "false")},
    int: {WRONG: ("abc", "1.5", "[1,2]", "{a: 1}"), RANGE: ("-1", "18446744073709551616", HUGE), EDGE: ("1", "0")},
    float: {WRONG: ("abc", "[1,2]", "{a: 1}", "true"), RANGE: ("-1.0", ".nan", ".inf", "1e30"), EDGE: ("{}", "0.0")},
    str: {WRONG: ("[1,2]", "{a: 1}", "1", "true"), RANGE: ("nothing", '""', "~", "x" * 300), EDGE: ("{}",)},
    list: {WRONG: ("abc", "1", "{a: 1}"), RANGE: ("[]", "[-1]", "[1e30]", "[[1],[a,[2]]]"), EDGE: ("{}",)},
    dict: {WRONG: ("abc", "[1,2]"), RANGE: ("null", "{_target_: nowhere.Nothing}"), EDGE: ()},
    type(None): {WRONG: ("[1,2]", "{a: 1}"), RANGE: ("-1", '""', "nothing", "1e30"), EDGE: ("null",)},
}
GROUP = {WRONG: ("1", "[1,2]", "{a: 1}"), RANGE: ("nothing", "null", '""', "../train"), EDGE: ("{}",)}
TICTACTOE = (
    *("game=tictactoe", "engine=eager", "games=4", "eval_every=4", "opponent=random", "evaluation.first=1"),
    *("evaluation.second=0", "evaluation.first_distant=0", "evaluation.second_distant=0"),
)
CONNECT4 = (*TICTACTOE[1:], "game=connect4", "features.count=2", "features.length=3")
CHESS = (
    *("+experiment=chess_td_leaf", "games=8", "eval_every=8", "learner.self_play.nodes=5", "evaluation.games=2"),
    *("evaluation.nodes=5", "evaluation.adjudication.max_plies=6", "learner.self_play.adjudication.max_plies=12"),
)
ENGINE = ("opponent=uci", f"opponent.command='{sys.executable} -m rlgames.uci'", "opponent.nodes=5")
EVALUATE_CHESS = (
    *("opponent=untrained", "opponent.nodes=5", "checkpoint=../chess", "evaluation=match", "evaluation.games=2"),
    *("evaluation.nodes=5", "evaluation.adjudication.max_plies=6"),
)
BASE = {  # of a program, and of what is chosen in it
    "train": TICTACTOE,
    "train game=chess": CHESS,
    "train game=connect4": CONNECT4,
    "train features=chess": CHESS,
    "train features=ntuples": CONNECT4,
    "train features=planes": (*TICTACTOE, "features=planes", "network=mlp"),
    "train network=linear": CHESS,
    "train network=mlp": (*TICTACTOE, "features=planes", "network=mlp"),
    "train opponent=untrained": (*CHESS, "opponent.nodes=5"),
    "train opponent=uci": (*CHESS, *ENGINE),
    "train evaluation=match": CHESS,
    "train evaluation=exhaustive": (*TICTACTOE[:5], "evaluation=exhaustive"),
    "train learner=td_leaf": CHESS,
    "train learner=q": ("+experiment=tictactoe_q", "games=20", "eval_every=20", "engine=eager"),
    "evaluate": ("checkpoint=../run", *TICTACTOE[4:]),
    "evaluate evaluation=exhaustive": ("checkpoint=../run", "opponent=random", "evaluation=exhaustive"),
    "evaluate evaluation=match": EVALUATE_CHESS,
    "evaluate game=chess": EVALUATE_CHESS,
    "evaluate opponent=untrained": EVALUATE_CHESS,
    "evaluate opponent=uci": (*EVALUATE_CHESS[2:], *ENGINE),
    "play": ("checkpoint=../run", "against=random", "side=first"),
    "tournament": ("players=[../run,random]", "matches=2"),
    "match": ("first=start", "second=start", "games=2", "nodes=5", "adjudication.max_plies=10"),
    "suite": ("epd=../positions.epd", "nodes=10"),
    "uci": (),
    "info": (),
}
STDIN = {"uci": "position startpos\ngo nodes 10\nquit\n", "play": "quit\n"}
EPD = '6k1/5ppp/8/8/8/8/5PPP/3R2K1 w - - bm Rd8#; id "1";\n'


class Key(NamedTuple):
    """A key of a program's configuration.

    Attributes:
        program: such as "train".
        chosen: the word that puts it there, such as "optimizer=idbd"; empty: always there.
        name: dotted.
        default: its value in the yaml, resolved; a group's name has the name of a file.
        values: per kind.
    """

    program: str
    chosen: str
    name: str
    default: Any
    values: dict[str, tuple[str, ...]]

    def base(self) -> list[str]:
        """Words that make the program small, without this key."""
        group, own = self.chosen.partition("=")[0], BASE.get(f"{self.program} {self.chosen}")
        words = own or (self.chosen, *(word for word in BASE[self.program] if not word.startswith(f"{group}=")))
        return [word for word in words if word and word.lstrip("+").partition("=")[0] != self.name]


class Line(NamedTuple):
    """A command line that is to be tried: ``key`` gets ``value``, which is of a ``kind``."""

    key: Key
    kind: str
    value: str

    def words(self) -> list[str]:
        """The words of the command line."""
        name = self.key.name
        return [*self.key.base(), f"{name}={self.value}"]

    def __str__(self) -> str:
        chosen = f" {self.key.chosen}" if self.key.chosen else ""
        return f"{self.key.program}{chosen} {self.key.name}={self.value[:40]}"


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The dotted keys below ``node``, inner ones too, with their values."""
    for key, value in node.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, dict):
            yield name, value
            yield from leaves(value, name)
        else:
            yield name, value


def keys_of(program: str) -> Iterator[Key]:
    """Every key that stands in the yaml of ``program`` or in one of the files that it lets choose from."""
    files, named = {"": CONF / f"{program}.yaml"}, groups(program)
    for group, default in named.items():  # an experiment, which is added, has values for keys that are here anyway
        yield Key(program, "", group, default, GROUP)
        if program == "train" or group not in FOR_GAMES:
            files |= {f"{group}={file.stem}": file for file in sorted((CONF / group).glob("*.yaml"))}
    seen, known = set(), dict(leaves(OmegaConf.to_container(load(config=program), throw_on_missing=False)))
    for chosen, file in files.items():
        text = file.read_text(encoding="utf-8")
        node = OmegaConf.to_container(OmegaConf.create(text), resolve=False)
        prefix = "" if not chosen or "@package _global_" in text else chosen.partition("=")[0]
        for name, value in leaves({key: node[key] for key in node if key != "defaults"}, prefix):
            there = name in known or name.startswith("hydra")
            owner = "" if there and name.partition(".")[0] not in named else chosen
            if (owner, name) not in seen and name not in named:
                seen.add((owner, name))
                yield Key(program, owner, name, plain(value), VALUES[type(plain(value))])


def groups(program: str) -> dict[str, str | None]:
    """The groups of files that ``program`` lets choose from, and what it takes if none is named."""
    entries = OmegaConf.to_container(OmegaConf.load(CONF / f"{program}.yaml").defaults)
    chosen = {group: name for entry in entries if isinstance(entry, dict) for group, name in entry.items()}
    return {group: name for group, name in chosen.items() if not group.startswith("override ")}


def plain(value: Any) -> Any:
    """A default that another key decides (``${seed}``) is a whole number."""
    return 0 if isinstance(value, str) and value.startswith("${") else value


def lines_of(key: Key) -> Iterator[Line]:
    """What to try for ``key``; a default is legal, wherever else its value stands."""
    kinds = {}  # by value
    for kind, values in reversed(key.values.items()):
        for value in values:
            kinds.setdefault(written(key) if value == "{}" else value, kind)
    return (Line(key, kind, value) for value, kind in kinds.items())


def written(key: Key) -> str:
    """The default of ``key`` as a word of the command line has it; of one that has none, that of ``BASE``."""
    if key.default in (None, "???"):
        words = (word.partition("=") for word in BASE[key.program])
        return next((value for name, _, value in words if name == key.name), "null")
    text = str(key.default)
    return text.replace("'", "").replace(" ", "") if isinstance(key.default, list) else text


def programs() -> list[str]:
    """The programs with words of their own; those of check are train's."""
    return sorted(file.stem for file in CONF.glob("*.yaml") if file.stem != "check")


@functools.cache
def all_lines() -> tuple[Line, ...]:
    """Every value of every key of every program, and words for the program that takes none."""
    lines = [line for program in programs() for key in keys_of(program) for line in lines_of(key)]
    none = Key("info", "", "seed", None, {WRONG: ("abc",), RANGE: ("-1",), EDGE: ("1",)})
    return (*lines, *lines_of(none))


def cases(lab: Lab, everything: bool) -> list[Case]:
    """All lines, or some that are drawn: of each key and kind one at most."""
    lines = list(all_lines())
    if not everything:
        rng = random.Random(lab.seed)
        rng.shuffle(lines)
        lines = list({(line.key[:3], line.kind): line for line in lines}.values())[:NUMBER]

    def case(line: Line) -> Case:
        command = command_line(line.key.program, line.words())
        return Case("words", str(line), lambda folder: attempt(lab, line, folder), command)

    return [case(line) for line in lines]


def attempt(lab: Lab, line: Line, folder: Path) -> str:
    """Give a program a command line.

    Raises:
        FoundError: see ``judge``.
    """
    place = lab.reference("words", lambda place: prepare(lab, place))
    here = place / folder.name
    here.mkdir()
    program = line.key.program
    done = lab.run(program, line.words(), here, STDIN.get(program, ""), LIMIT)
    return judge(line, done)


def prepare(lab: Lab, place: Path) -> Path:
    """A run, a chess run and test positions, beside which the command lines are tried."""
    for name, words in (("run", TICTACTOE), ("chess", CHESS)):
        lab.run("train", [*words, f"run_dir={name}"], place, limit=600).inspect()
    (place / "positions.epd").write_text(EPD, encoding="utf-8")
    return place


def judge(line: Line, done: Done) -> str:
    """What the program made of ``line``, in words.

    Raises:
        FoundError: if it did not end in good order, said what is wrong without naming the key, or took a value of the
            wrong type; and, for people to judge, if it took one out of range or refused a legal one.
    """
    if line.value == HUGE and not done.ended and done.out:
        raise FoundError("accepted", "it began to work")
    done.inspect()
    if done.status:
        if line.key.name.rpartition(".")[2] not in done.sentence and line.value not in done.sentence:
            raise FoundError("key not named", done.sentence)
        if line.kind == EDGE:
            raise FoundError("refused", done.sentence)
        return done.sentence
    if line.kind == WRONG:
        raise FoundError("wrong type accepted", done.last_line())
    if line.kind == RANGE:
        raise FoundError("accepted", done.last_line())
    return ""
