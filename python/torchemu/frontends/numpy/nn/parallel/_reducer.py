"""Averages gradients over ranks while the backward pass goes on."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from torchemu.frontends.numpy._autograd.node import AccumulateGrad, Node
from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy._tensor.creation import zeros
from torchemu.frontends.numpy._tensor.elementwise import mul
from torchemu.frontends.numpy._tensor.from_data import tensor
from torchemu.frontends.numpy.autograd.variable import Variable
from torchemu.frontends.numpy.distributed import GradBucket, ProcessGroup, all_reduce, broadcast
from torchemu.frontends.numpy.nn.parallel._buckets import Bucket, assigned

_UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your module has parameters that were not used in producing loss. "
)
_FIND = (
    "You can enable unused parameter detection by passing the keyword argument `find_unused_parameters=True` to "
    "`torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure all `forward` function outputs participate in "
    "calculating loss. "
)
_OUTPUTS = (
    "\nIf you already have done the above, then the distributed data parallel module wasn't able to locate the output "
    "tensors in the return value of your module's `forward` function. Please include the loss function and the "
    "structure of the return value of `forward` of your module when reporting this issue (e.g. list, dict, iterable)."
)
_TWICE = (
    "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a "
    "module parameter outside the `forward` function. Please make sure model parameters are not shared across multiple "
    "concurrent forward-backward passes. 2) Reused parameters in multiple reentrant backward passes. For example, if "
    "you use multiple `checkpoint` functions to wrap the same part of your model, it would result in the same set of "
    "parameters been used by different reentrant backward passes multiple times, and hence marking a variable ready "
    "multiple times.\nParameter at index {} with name {} has been marked as ready twice."
)


class Reducer:
    """Averages the gradients of some parameters over the ranks of a group.

    Every parameter's gradient, when it is complete, is put into its bucket, and a full bucket's reduction is issued,
    in the order of the buckets, which is the same on all ranks. At the end of the backward pass the current stream
    waits for the reductions.

    Args:
        named: the parameters with their names.
        group: the ranks.
        limits: bytes of the first bucket, and of the others.
        find_unused: look in each forward pass which parameters get no gradient, and do without them.
        as_views: let the gradients be the parts of the buckets, instead of copying them to and fro.

    Attributes:
        params, group: as given.
        hook: what reduces a bucket and returns a future of the result, called with a GradBucket; None: the reducer
            itself, by the mean.
        hook_name: what a program calls that; "" without one.
        buckets: the gradients, in the order in which they are reduced.
        first_sizes: the bytes of the buckets of the first pass.
        passes: how many backward passes have begun to be waited for.
        rebuilt: buckets have been made anew, in the order of the gradients.
    """

    def __init__(
        self,
        named: Sequence[tuple[str, Tensor]],
        group: ProcessGroup,
        limits: Sequence[int],
        find_unused: bool,
        as_views: bool,
    ) -> None:
        self._names, self._params = [name for name, _ in named], [p for _, p in named]
        self.params, self.group = self._params, group
        self._group, self._limits = group, limits
        self._find_unused, self._as_views = find_unused, as_views
        self._share = 1 / group.size()
        self.hook: Any = None
        self.hook_name, self.passes = "", 0
        order = range(len(self._params))
        self._make_buckets(assigned(self._params, order, self._limits)[::-1])
        self.first_sizes = [bucket.flat.nbytes for bucket in self.buckets]
        self._arrivals: list[int] = []  # in the first backward pass; afterwards buckets are made in this order
        self.rebuilt = False
        self._expecting = self._started = False
        self._unused: list[int] = []
        self._used: set[int] = set()
        self._ready: set[int] = set()
        self._used_anywhere: Tensor | None = None
        for number, p in enumerate(self._params):
            p.register_post_accumulate_grad_hook(functools.partial(self._arrived, number))

    def _make_buckets(self, numbers: list[list[int]]) -> None:
        self.buckets = [Bucket(each, self._params) for each in numbers]
        self._places = {number: (bucket, slot) for bucket in self.buckets for slot, number in enumerate(bucket.numbers)}

    # -- forward

    def rebuild_buckets(self) -> None:
        """After the first backward pass, makes buckets in the order in which gradients have arrived at rank 0."""
        if self.rebuilt or self._find_unused or len(self._arrivals) != len(self._params):
            return
        order = tensor(self._arrivals, device=self._params[0].device)
        broadcast(order, group=self._group, group_src=0)
        self._make_buckets(assigned(self._params, order.tolist(), self._limits))
        self.rebuilt = True

    def prepare(self, outputs: Any) -> None:
        """Begins to wait for gradients.

        Args:
            outputs: what forward has returned.

        Raises:
            RuntimeError: the last backward pass has not had all gradients.
        """
        if self._started:
            raise RuntimeError(self._unfinished())
        self._expecting, self._next = True, 0
        self.passes += 1
        self._ready.clear()
        for bucket in self.buckets:
            bucket.reset()
        self._unused = self._unreachable(outputs) if self._find_unused else []

    def _unfinished(self) -> str:
        numbers = " ".join(str(i) for i in range(len(self._params)) if i not in self._ready)
        rank = self._group.rank()
        hint = _UNFINISHED + ("" if self._find_unused else _FIND) + _OUTPUTS
        return (
            f"{hint}\nParameter indices which did not receive grad for rank {rank}: {numbers}\n In addition, you can "
            "set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL to print out information "
            "about which particular parameters did not receive gradient on this rank as part of this error"
        )

    def _unreachable(self, outputs: Any) -> list[int]:
        """The parameters that no output comes from."""
        reached = {id(node.variable) for node in _nodes(outputs) if isinstance(node, AccumulateGrad)}
        return [i for i, p in enumerate(self._params) if id(p) not in reached]

    @property
    def unused_bytes(self) -> int:
        """Of the parameters that the last forward pass has not used."""
        return sum(self._params[i].nbytes for i in self._unused)

    def reduce_by(self, hook: Any, name: str) -> None:
        """Has a function reduce the buckets; see hook.

        Raises:
            RuntimeError: there is one already.
        """
        if self.hook is not None:
            before = "register_builtin_comm_hook or register_comm_hook"
            if not name.startswith("BuiltinCommHookType"):
                before = "register_comm_hook or register_builtin_comm_hook"
            raise RuntimeError(f"{before} can only be called once.")
        self.hook, self.hook_name = hook, name

    def _set_static_graph(self) -> None:
        """Looks in each forward pass which parameters get no gradient.

        Raises:
            RuntimeError: there has been a pass.
        """
        if self.passes:
            raise RuntimeError(
                "set_static_graph() should be called before training loop starts and after DistributedDataParallel is "
                "constructed."
            )
        self._find_unused = True

    def divide_by(self, count: int) -> None:
        """Makes the mean that of so many ranks: the others have only zeros to give."""
        self._share = 1 / count

    def shadow(self) -> None:
        """Takes part in other ranks' backward pass, with zeros. Gradients here stay as they are."""
        zeroed = [Bucket(bucket.numbers, self._params) for bucket in self.buckets]
        for number, bucket in enumerate(zeroed):
            bucket.flat.zero_()
            self._issue(bucket, number)
        if self._find_unused:
            all_reduce(zeros(len(self._params), dtype="int32", device=self._params[0].device), group=self._group)
        for bucket in zeroed:
            bucket.work.wait()
        if not self.rebuilt:
            self._arrivals = list(range(len(self._params)))

    # -- backward

    def _arrived(self, number: int, p: Tensor) -> None:
        """The hook of a parameter: its gradient is complete."""
        self._used.add(number)
        if not self._expecting:
            return
        if not self._started:
            self._started = True
            for unused in self._unused:
                self._mark(unused)
        if not self.rebuilt:
            self._arrivals.append(number)
        self._mark(number)

    def _mark(self, number: int) -> None:
        """Puts a gradient into its bucket, and issues the reductions of the buckets whose turn it is."""
        if number in self._ready:
            raise RuntimeError(_TWICE.format(number, self._names[number]))
        self._ready.add(number)
        bucket, slot = self._places[number]
        with no_grad():
            self._put(self._params[number], bucket.views[slot])
        bucket.missing -= 1
        while self._next < len(self.buckets) and not self.buckets[self._next].missing:
            self._issue(self.buckets[self._next], self._next)
            self._next += 1
            if self._next == len(self.buckets):
                self._all_issued()

    def _put(self, p: Tensor, view: Tensor) -> None:
        grad = p.grad
        if grad is None:
            view.zero_()
        elif self.hook is None and grad is view:
            grad.mul_(self._share)
        elif self.hook is None:
            mul(grad, self._share, out=view)
        elif grad is not view:
            view.copy_(grad)
        if grad is not None and self._as_views:
            p.grad = view

    def _issue(self, bucket: Bucket, number: int) -> None:
        """Has the bucket with this number reduced."""
        if self.hook is None:
            bucket.work = all_reduce(bucket.flat, group=self._group, async_op=True)
            return
        params = [self._params[i] for i in bucket.numbers]
        last = number == len(self.buckets) - 1
        with no_grad():
            bucket.work = self.hook(GradBucket(number, bucket.flat, bucket.views, params, last))

    def _all_issued(self) -> None:
        if self._find_unused:
            used = [int(i in self._used) for i in range(len(self._params))]
            self._used_anywhere = tensor(used, dtype="int32", device=self._params[0].device)
            all_reduce(self._used_anywhere, group=self._group)
        Variable._execution_engine.queue_callback(self._finish)

    def _finish(self) -> None:
        """Waits for the reductions, and gives the parameters their gradients."""
        self._expecting = self._started = False
        for bucket in self.buckets:
            result = bucket.work.wait()
            bucket.work = None
            if self.hook is not None:
                self._adopt(bucket, result[0] if isinstance(result, list) else result)
            for number, view in zip(bucket.numbers, bucket.views, strict=True):
                self._take(number, view)
        self._used.clear()

    @no_grad()
    def _adopt(self, bucket: Bucket, result: Tensor) -> None:
        """Takes over what a hook has made of a bucket."""
        if result is not bucket.flat:
            bucket.flat.copy_(result)

    @no_grad()
    def _take(self, number: int, view: Tensor) -> None:
        p = self._params[number]
        if p.grad is view or (number not in self._used and self._is_unused_everywhere(number)):
            return
        if self._as_views:
            p.grad = view
        elif p.grad is None:
            p.grad = view.clone()
        else:
            p.grad.copy_(view)

    def _is_unused_everywhere(self, number: int) -> bool:
        return self._used_anywhere is not None and not self._used_anywhere[number].item()


def _tensors(outputs: Any) -> Iterator[Tensor]:
    """The tensors in what forward has returned."""
    if isinstance(outputs, Tensor):
        yield outputs
    elif isinstance(outputs, list | tuple):
        for value in outputs:
            yield from _tensors(value)
    elif isinstance(outputs, dict):
        yield from _tensors(list(outputs.values()))
    elif is_dataclass(outputs):
        yield from _tensors([getattr(outputs, field.name) for field in fields(outputs)])


def _nodes(outputs: Any) -> Iterator[Node]:
    """The nodes that the outputs come from."""
    waiting = [t.grad_fn for t in _tensors(outputs) if t.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        new = {edge.node for edge in node.edges if edge is not None} - seen
        seen |= new
        waiting.extend(new)
