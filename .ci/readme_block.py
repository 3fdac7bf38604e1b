#!/usr/bin/env python3
"""Print a command of the README, so that what is tested is what is written.

    readme_block.py README.md NAME

The command is the fenced block after the line `<!-- ci: NAME -->`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path


def main() -> int:
    """Print the block, or say that there is none."""
    text = Path(sys.argv[1]).read_text()
    found = re.search(rf"<!-- ci: {re.escape(sys.argv[2])} -->\s*```\w*\n(.*?)```", text, re.DOTALL)
    if found is None:
        print(f"{sys.argv[1]} has no block marked <!-- ci: {sys.argv[2]} -->", file=sys.stderr)
        return 1
    print(found[1], end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
