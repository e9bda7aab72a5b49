"""Ranks that stand for others: which do, and whether they do the same as another rank of their class."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence

from torchemu.runtime.world import Context, call_site


class Divergence(RuntimeError):
    """Raised in a rank that does not do what another one of its class has done."""


class Classes:
    """Ranks by what they do.

    Args:
        keys: by rank; ranks of one key do the same.
    """

    def __init__(self, keys: Sequence[Hashable]) -> None:
        self.keys = list(keys)
        self._ranks: dict[Hashable, list[int]] = {}
        for rank, key in enumerate(self.keys):
            self._ranks.setdefault(key, []).append(rank)

    def standing(self, of_each: Callable[[list[int]], int]) -> list[int]:
        """Returns, by rank, the one that stands for it: of each class the one that a function chooses."""
        chosen = {key: of_each(ranks) for key, ranks in self._ranks.items()}
        return [chosen[key] for key in self.keys]

    def __len__(self) -> int:
        return len(self._ranks)

    def crossed(self, key: Callable[[int], Hashable]) -> Classes:
        """Returns the classes of ranks that are in one class and have one key."""
        return Classes([(before, key(rank)) for rank, before in enumerate(self.keys)])

    def by_peers(self, peers: Sequence[int]) -> Classes | None:
        """Returns the classes of ranks that have one place among those that send each other messages; None where these
        are at no equal distances.

        Args:
            peers: ranks of one group in which messages are sent, in its order.
        """
        stride = peers[1] - peers[0] if len(peers) > 1 else 0
        if stride <= 0 or any(b - a != stride for a, b in itertools.pairwise(peers)):
            return None
        return self.crossed(lambda rank: rank // stride % len(peers))


class Calls:
    """The calls of the ranks that run, each compared with that of another rank of its class.

    Args:
        classes: the ranks' classes.
        before: those of a run in which other ranks stood for the classes; None in the first one.
    """

    def __init__(self, classes: Classes, before: Calls | None = None) -> None:
        self._classes, self._before = classes, before
        self._seen: dict[Hashable, list[tuple[int, str]]] = {key: [] for key in classes.keys}
        self.divergence = ""

    def note(self, context: Context, name: str, *about: Hashable) -> None:
        """Notes a rank's next call.

        Args:
            context: the rank's.
            name: what reports call it.
            about: what must be equal.

        Raises:
            Divergence: the other rank of its class has called something else.
        """
        key = self._classes.keys[context.rank]
        seen = self._seen[key]
        call = hash((name, about)), name
        if self._before is not None:
            others = self._before._seen[key]
            theirs = others[len(seen)] if len(seen) < len(others) else (0, "nothing more")
            if theirs[0] != call[0]:
                self._diverge(context, name, theirs[1])
        seen.append(call)

    def check_end(self) -> None:
        """Looks whether all have called as much as the others.

        Raises:
            Divergence: some have called less.
        """
        for key, others in ({} if self._before is None else self._before._seen).items():
            if len(self._seen[key]) < len(others) and not self.divergence:
                self.divergence = (
                    f"one rank ends where another one of its class calls {others[len(self._seen[key])][1]}"
                )

    def _diverge(self, context: Context, name: str, theirs: str) -> None:
        what, site = f"{name} with other arguments" if name == theirs else theirs, call_site()
        self.divergence = f"rank {context.rank} calls {name} at {site}, where another rank of its class calls {what}"
        raise Divergence(self.divergence)
