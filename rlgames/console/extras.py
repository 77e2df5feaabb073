"""Optional extras: the purpose of each, what is installed, and the command that installs the rest."""

from importlib.metadata import PackageNotFoundError, version

# Purpose and requirements of each (as in pyproject.toml).
EXTRAS = {
    "solver": ("perfect play in Connect-4 (AGPL)", ["bitbully==0.0.79"]),
    "chess": ("chess files and engines (GPL)", ["chess>=1.11,<2"]),
    "plots": ("learning curves and tables of a study", ["matplotlib>=3.8", "scipy>=1.11"]),
    "sweep": ("runs of a sweep side by side", ["hydra-joblib-launcher>=1.2,<2"]),
    "slurm": ("runs on a Slurm cluster", ["hydra-submitit-launcher>=1.2,<2"]),
    "ray": ("runs on a Ray cluster", ["hydra-ray-launcher>=1.2,<2"]),
    "optuna": ("tuning of hyper-parameters", ["hydra-optuna-sweeper>=1.2,<2"]),
    "notebooks": ("the notebooks and the clickable board", ["jupyterlab>=4", "ipywidgets>=8", "matplotlib>=3.8"]),
}


def missing(requirements: list[str]) -> list[str]:
    """Those of ``requirements`` whose package is not installed."""
    return [requirement for requirement in requirements if _version(_package(requirement)) is None]


def _package(requirement: str) -> str:
    return requirement.split("=")[0].rstrip("<>~!")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def extras() -> list[str]:
    """A line for each extra: the versions that are installed, or the command that installs what is missing."""
    lines = []
    for name, (purpose, requirements) in EXTRAS.items():
        lacking = missing(requirements)
        found = ", ".join(f"{p} {_version(p)}" for p in map(_package, requirements) if _version(p))
        install = f"missing; python -m pip install {' '.join(repr(word) for word in lacking)}" if lacking else found
        lines.append(f"  {name:<10} {purpose}: {install}")
    return lines
