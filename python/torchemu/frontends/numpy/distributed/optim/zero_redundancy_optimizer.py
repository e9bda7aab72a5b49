"""ZeroRedundancyOptimizer: each rank optimizes some of the parameters, and gets the others from who optimizes them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from torchemu.frontends.numpy._grad_mode import no_grad
from torchemu.frontends.numpy._tensor.core import Tensor
from torchemu.frontends.numpy.distributed import ProcessGroup, broadcast, broadcast_object_list
from torchemu.frontends.numpy.distributed._process_group import resolved
from torchemu.frontends.numpy.distributed.algorithms.join import Join, Joinable, JoinHook
from torchemu.frontends.numpy.optim.optimizer import Optimizer, ParamsT
from torchemu.unsupported import unsupported

__all__ = ["ZeroRedundancyOptimizer"]

Groups = list[dict[str, Any]]


class _Shadow(JoinHook):
    """Takes part in the steps of ranks that still have batches, with the gradients of this one's last."""

    def __init__(self, zero: ZeroRedundancyOptimizer) -> None:
        self._zero = zero

    def main_hook(self) -> None:
        """A step."""
        self._zero.step()


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer each of whose parameters has its state on one rank only: after that rank's step the others get the
    parameter from it. Parameters are given out, the largest first, to the rank with the fewest elements so far.

    Args:
        params: tensors, or groups.
        optimizer_class: what each rank optimizes its parameters with.
        process_group: the ranks; None: the default group.
        parameters_as_bucket_view: means nothing here.
        overlap_with_ddp: must be False.
        defaults: options of the optimizer.

    Attributes:
        optim: this rank's optimizer.
        param_groups: those of all parameters.

    Raises:
        NotImplementedError: overlap_with_ddp. TypeError, ValueError: params are not what can be optimized.
    """

    def __init__(
        self,
        params: ParamsT,
        optimizer_class: type[Optimizer],
        process_group: ProcessGroup | None = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise unsupported("ZeroRedundancyOptimizer(overlap_with_ddp=True)", "step after the backward pass")
        self.initialized = False
        self.process_group = resolved(process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self._consolidated: list[dict[str, Any]] = []
        super().__init__(params, defaults)
        self.optim = optimizer_class(self._partition()[self.rank], **defaults)
        self._copy_options(self.optim.param_groups, self.param_groups)
        self.initialized = True

    def _partition(self) -> list[Groups]:
        """For each rank the groups with its parameters only."""
        sizes = [0] * self.world_size
        ranks: list[Groups] = [[] for _ in sizes]
        for group in self.param_groups:
            mine: list[list[Tensor]] = [[] for _ in sizes]
            for p in sorted(group["params"], key=lambda t: t.numel(), reverse=True):
                rank = sizes.index(min(sizes))
                mine[rank].append(p)
                sizes[rank] += p.numel()
            for groups, own in zip(ranks, mine, strict=True):
                groups.append({**group, "params": own})
        return ranks

    @staticmethod
    def _copy_options(source: Groups, target: Groups) -> None:
        for old, new in zip(source, target, strict=True):
            new.update({key: value for key, value in old.items() if key not in ("params", "param_names")})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds tensors, which are given out as the others were."""
        super().add_param_group(param_group)
        if self.initialized:
            self._consolidated = []
            self.optim.add_param_group(self._partition()[self.rank][-1])
            self._copy_options(self.optim.param_groups[-1:], self.param_groups[-1:])

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Optimizes this rank's parameters, and gets the others.

        Args:
            closure: calculates the loss and its gradients anew; what it returns is returned.
            kwargs: for the step of the rank's optimizer.
        """
        Join.notify_join_context(self)
        self._copy_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure, **kwargs)
        self._share()
        self._copy_options(self.optim.param_groups, self.param_groups)
        return loss

    @no_grad()
    def _share(self) -> None:
        works = [
            broadcast(p.detach(), group=self.process_group, group_src=rank, async_op=True)
            for rank, groups in enumerate(self._partition())
            for group in groups
            for p in group["params"]
        ]
        for work in works:
            assert work is not None
            work.wait()

    # -- states

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Gathers the states of all ranks on one, for state_dict there. All ranks have to call it."""
        self._copy_options(self.param_groups, self.optim.param_groups)
        gathered: list[dict[str, Any]] = []
        for rank in range(self.world_size):
            own = [self.optim.state_dict() if rank == self.rank else None]
            broadcast_object_list(own, group=self.process_group, group_src=rank)
            assert own[0] is not None
            gathered.append(own[0])
        self._consolidated = gathered if self.rank == to else []

    def state_dict(self) -> dict[str, Any]:
        """The states and groups of all parameters, as the optimizer would have them that has them all.

        Raises:
            RuntimeError: they have not been gathered on this rank.
        """
        if not self._consolidated:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call "
                f"`consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save the global "
                "state."
            )
        result = super().state_dict()
        numbers = self._numbers()
        for local, groups in zip(self._consolidated, self._partition(), strict=True):
            params = [p for group in groups for p in group["params"]]
            for number, state in local["state"].items():
                result["state"][numbers[id(params[number])]] = state
        result["state"] = dict(sorted(result["state"].items()))
        return result

    def _numbers(self) -> dict[int, int]:
        """The numbers of all parameters, in the order of the groups."""
        return {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what state_dict returned; of the states those of this rank's parameters."""
        super().load_state_dict({**state_dict, "state": {}})
        numbers, local = self._numbers(), self.optim.state_dict()
        params = [p for group in self.optim.param_groups for p in group["params"]]
        states = state_dict["state"]
        own = {i: copy.deepcopy(states[numbers[id(p)]]) for i, p in enumerate(params) if numbers[id(p)] in states}
        self.optim.load_state_dict({**local, "state": own})
        self._copy_options(self.param_groups, self.optim.param_groups)

    # -- different numbers of batches

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What takes part in the steps of ranks that still have batches."""
        return _Shadow(self)

    @property
    def join_device(self) -> Any:
        """That of the first parameter."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self) -> ProcessGroup:
        """The ranks."""
        return self.process_group
