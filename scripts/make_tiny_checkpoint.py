"""Write a tiny random-weight checkpoint in a family's hub layout.

python scripts/make_tiny_checkpoint.py --family llada OUT [--seed 0]

Point `model.path` of that family's recipe at OUT to try the recipe on a CPU, without a download.
"""

import argparse
import sys

from rl.models import MODELS
from rl.models.tiny_checkpoint import make_tiny_checkpoint


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", metavar="OUT", help="folder to write; new or empty")
    parser.add_argument("--family", required=True, choices=sorted(MODELS))
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    try:
        print(make_tiny_checkpoint(args.family, args.out, args.seed))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
