# torchrun --nproc-per-node 2 -m package
"""A program that is a package: relative imports, and classes of __main__ that are pickled."""

import pickle
import sys

import torch.distributed as dist

from . import shapes
from .shapes import Square


class Marked(Square):
    """A class of __main__."""


def main():
    dist.init_process_group("gloo")
    again = pickle.loads(pickle.dumps(Marked(3)))
    assert type(again) is Marked and sys.modules["__main__"].Marked is Marked
    shapes.made.append(again)
    if dist.get_rank() == 0:
        print(__name__, __package__, __spec__.name, again.area(), len(shapes.made))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
