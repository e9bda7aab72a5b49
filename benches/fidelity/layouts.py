"""Times of products of matrices whose operands lie in memory by rows or by columns, as h200_layouts.csv has them.

    python benches/fidelity/layouts.py > h200_layouts.csv

Of M, N and K some are multiples of 8, and some are off that by 4, 2 or 1. Vocabularies of 50,257 and 50,304 words are
among them, and layers of an MLP that three ranks share.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Iterator

import torch

_BASES = [
    (256, 2048, 2048),
    (1024, 2048, 8192),
    (1024, 8192, 2048),
    (4096, 4096, 4096),
    (4096, 11008, 4096),
    (256, 4096, 4096),
]
_BUSY_MS = 20
"""Milliseconds that the calls of a graph take in all, about."""


def shapes() -> Iterator[tuple[int, int, int]]:
    """Yields M, N and K."""
    for m, n, k in _BASES:
        yield m, n, k
        for off in (4, 2, 1):
            yield from ((m, n + off, k), (m, n, k + off), (m + off, n, k))
        yield from ((m, n + 1, k + 1), (m, n + 2, k + 2), (m + 1, n + 1, k + 1), (m + 1, n, k + 1))
    for rows in (1024, 8192):
        for words in (50257, 50304):
            yield from ((rows, words, 768), (768, words, rows), (words, 768, rows))
        yield rows, 768, 50257
    for tokens in (256, 1024, 4096):
        for width in (2048, 4096, 8192):
            inner = 4 * width // 3
            yield from ((tokens, inner, width), (tokens, width, inner))


def matrix(rows: int, columns: int, layout: str) -> torch.Tensor:
    """Returns random elements that lie by rows, n, or by columns, t."""
    if layout == "t":
        return torch.randn(columns, rows, device="cuda").half().t()
    return torch.randn(rows, columns, device="cuda").half()


def microseconds(call: Callable[[], object]) -> float:
    """Returns what a call takes on the device: the median of 7 replays of a graph of 5 to 100."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def elapsed(run: Callable[[], object]) -> float:
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end)

    for _ in range(3):
        call()
    calls = max(5, min(100, int(_BUSY_MS / max(elapsed(call), 1e-3))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    elapsed(graph.replay)
    return statistics.median(elapsed(graph.replay) for _ in range(7)) * 1000 / calls


def main() -> None:
    """Prints the rows."""
    print("dtype,m,n,k,us,layout")
    for m, n, k in dict.fromkeys(shapes()):
        for layout in ("nn", "nt", "tn"):
            out = torch.empty(m, n, device="cuda", dtype=torch.float16)
            call = functools.partial(torch.mm, matrix(m, k, layout[0]), matrix(k, n, layout[1]), out=out)
            print(f"float16,{m},{n},{k},{microseconds(call):.3f},{layout}", flush=True)


if __name__ == "__main__":
    main()
