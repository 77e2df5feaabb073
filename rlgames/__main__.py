"""List the programs: ``python -m rlgames``."""

PROGRAMS = {
    "train": "learn a game by self-play: python -m rlgames.train game=tictactoe",
    "evaluate": "measure an agent against an opponent: python -m rlgames.evaluate checkpoint=runs/...",
    "play": "play against an agent in the terminal, or watch one: python -m rlgames.play",
    "tournament": "every player against every other: python -m rlgames.tournament runs/... random minimax",
    "match": "two chess players, with Elo: python -m rlgames.match first=runs/chess/... second=start",
    "suite": "chess test positions: python -m rlgames.suite epd=wac.epd checkpoint=runs/chess/...",
    "uci": "an engine for chess programs: python -m rlgames.uci checkpoint=runs/chess/...",
    "check": "whether a game, rule or learner of your own keeps its contract: python -m rlgames.check game=mine",
    "info": "versions, devices, caches and missing extras: python -m rlgames.info",
}

if __name__ == "__main__":
    from rlgames.console.cli import show

    sentence = "games -> features -> network -> learner -> optimizer -> trainer -> evaluation"
    programs = [f"  rlgames.{name:<11} {what}" for name, what in PROGRAMS.items()]
    show("\n".join([sentence, "", *programs, "", "each answers --help"]))
