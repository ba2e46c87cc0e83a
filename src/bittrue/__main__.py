"""`python -m bittrue`: the command line, also where no script was installed."""

import sys

from .cli import main

sys.exit(main())
