"""``python -m torchemu`` is the torchemu command."""

import sys

from torchemu.cli import main

sys.exit(main())
