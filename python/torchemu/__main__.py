"""``python -m torchemu`` is the torchemu command."""

import sys

from torchemu.launch.cli import main

sys.exit(main())
