"""Strip notebooks of outputs and run counts, as git keeps them: ``python scripts/strip_notebooks.py [--check]``.

Rewrites notebooks/*.ipynb where needed; with ``--check`` only names them. The exit status is 1 if there were any.
"""

import json
import sys
from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def stripped(text: str) -> str:
    """The notebook ``text`` without what running or opening it leaves behind."""
    notebook = json.loads(text)
    for number, cell in enumerate(notebook["cells"]):
        cell["id"], cell["metadata"] = f"cell-{number}", {}
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    kept = {"cells": notebook["cells"], "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main(words: list[str]) -> int:
    changed = 0
    for file in sorted(NOTEBOOKS.glob("*.ipynb")):
        text = file.read_text(encoding="utf-8")
        if text != stripped(text):
            print(f"{file.name} holds outputs or the like")
            changed = 1
            if "--check" not in words:
                file.write_text(stripped(text), encoding="utf-8")
    return changed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
