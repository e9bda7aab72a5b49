"""Configurations of kernels. The first one runs, on every rank alike, unless the run is told to look for the fastest:
then each runs once, in simulated time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torchemu import runtime
from torchemu.bridge.binding import go
from torchemu.bridge.handles import Handle
from torchemu.frontends.triton._jit import JITFunction


class OutOfResources(Exception):
    """A kernel needs more than there is."""


class Config:
    """A configuration: values of meta-parameters, and options of the launch.

    Attributes:
        kwargs: the values.
        num_warps, num_stages, num_ctas, maxnreg: the options.
        pre_hook: called with the arguments before a launch; None for nothing.
    """

    def __init__(
        self,
        kwargs: Mapping[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[..., Any] | None = None,
        ir_override: str | None = None,
    ) -> None:
        self.kwargs = dict(kwargs)
        self.num_warps, self.num_stages, self.num_ctas = num_warps, num_stages, num_ctas
        self.maxnreg, self.pre_hook, self.ir_override = maxnreg, pre_hook, ir_override

    def all_kwargs(self) -> dict[str, Any]:
        """Returns the values and the options."""
        options = {
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
            "num_ctas": self.num_ctas,
            "maxnreg": self.maxnreg,
        }
        return {**self.kwargs, **{key: value for key, value in options.items() if value is not None}}

    def __repr__(self) -> str:
        return ", ".join(f"{key}: {value}" for key, value in self.all_kwargs().items())

    __str__ = __repr__


class _Around:
    """A wrapper of a kernel that gives it arguments.

    Attributes:
        fn: the kernel, or what stands around it.
    """

    is_jit = True

    def __init__(self, fn: Any) -> None:
        functools.update_wrapper(self, getattr(fn, "fn", fn))
        self.fn = fn
        self.arg_names: list[str] = fn.arg_names
        self.base_fn: JITFunction = getattr(fn, "base_fn", fn)

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """Returns what launches the kernel with a grid."""
        return functools.partial(self.run, grid=grid, warmup=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function from a kernel."""
        return self.fn(*args, **kwargs)

    def warmup(self, *args: Any, **kwargs: Any) -> Any:
        """Launches nothing."""
        return self.run(*args, warmup=True, **kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches the kernel."""
        raise NotImplementedError

    def _named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return {**dict(zip(self.arg_names, args, strict=False)), **kwargs}


class Autotuner(_Around):
    """A kernel with several configurations.

    Attributes:
        configs: these.
        best_config: the one that ran last.
        cache: those that were found to be the fastest, by the values of the key and the types of the arguments.
    """

    def __init__(self, fn: Any, configs: Sequence[Config], key: Sequence[str], **options: Any) -> None:
        super().__init__(fn)
        self.configs = list(configs) or [Config({})]
        self.keys, self._options = list(key), options
        self.best_config = self.configs[0]
        self.cache: dict[Any, Config] = {}

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches the kernel in the first configuration that pruning leaves, or in the fastest one of these.

        Raises:
            ValueError: an argument is given that the configurations have.
        """
        named = self._named(args, kwargs)
        twice = set(self.configs[0].kwargs) & set(kwargs)
        if twice:
            names = ", ".join(sorted(twice))
            raise ValueError(
                f"Conflicting meta-parameters: {names}. Make sure that you don't re-define auto-tuned symbols."
            )

        def launch(config: Config) -> Any:
            for hook in (self._options.get("pre_hook"), config.pre_hook):
                if hook is not None:
                    hook({**named, **config.all_kwargs()})
            return self.fn.run(*args, grid=grid, warmup=warmup, **{**config.all_kwargs(), **kwargs})

        left = self._left(named)
        if len(left) > 1 and not warmup and runtime.current_world().autotunes:
            self.best_config = self._fastest(left, named, launch)
        else:
            self.best_config = left[0]
        return launch(self.best_config)

    def _left(self, named: Mapping[str, Any]) -> list[Config]:
        """The configurations that pruning leaves."""
        prune = self._options.get("prune_configs_by") or {}
        early, model = prune.get("early_config_prune"), prune.get("perf_model")
        left = list(early(self.configs, named, **named)) if early is not None else self.configs
        if model is not None:
            most = prune.get("top_k", 1.0)
            most = int(len(self.configs) * most) if isinstance(most, float) else most
            left = sorted(left, key=lambda config: model(**{**named, **config.all_kwargs()}))[:most]
        return left or self.configs[:1]

    def _fastest(self, configs: Sequence[Config], named: Mapping[str, Any], launch: Callable[[Config], Any]) -> Config:
        """The configuration in which the kernel takes the least simulated time with these arguments."""
        kinds = [str(value.dtype) for value in named.values() if hasattr(value, "dtype")]
        key = (*(named.get(name) for name in self.keys), *kinds)
        if key not in self.cache:
            times = [self._time(named, functools.partial(launch, config)) for config in configs]
            self.cache[key] = configs[times.index(min(times))]
            self._reset(named)
        return self.cache[key]

    def _reset(self, named: Mapping[str, Any]) -> None:
        for name in self._options.get("reset_to_zero") or ():
            named[name].zero_()

    def _time(self, named: Mapping[str, Any], launch: Callable[[], Any]) -> int:
        """The simulated picoseconds of a launch, for which tensors are zeroed or put back as the decorator says."""
        self._reset(named)
        kept = {name: named[name].clone() for name in self._options.get("restore_value") or ()}
        context = runtime.current()
        context.synchronize()
        start = Handle(go.StreamRecord(context.stream))
        launch()
        stop = Handle(go.StreamRecord(context.stream))
        context.wait(stop.number)
        for name, value in kept.items():
            named[name].copy_(value)
        return int(go.EventTime(stop.number) - go.EventTime(start.number))


class Heuristics(_Around):
    """A kernel some of whose meta-parameters are functions of its arguments.

    Attributes:
        values: the functions.
    """

    def __init__(self, fn: Any, values: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> None:
        super().__init__(fn)
        self.values = values

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        """Launches the kernel with what the functions give."""
        named = self._named(args, kwargs)
        for name, function in self.values.items():
            kwargs[name] = function({**named, **kwargs})
        return self.fn.run(*args, grid=grid, warmup=warmup, **kwargs)


def autotune(configs: Sequence[Config], key: Sequence[str], **options: Any) -> Callable[[Any], Autotuner]:
    """Gives a kernel configurations, of which the first one runs, or the fastest with ``torchemu run --autotune``.

    Args:
        configs: in their order.
        key: the arguments on which the choice depends.
        options: prune_configs_by, reset_to_zero, restore_value, pre_hook, post_hook, warmup, rep, use_cuda_graph,
            do_bench, cache_results.

    Raises:
        TypeError: there is no such option.
    """
    unknown = set(options) - _OPTIONS
    if unknown:
        raise TypeError(f"triton.autotune has no option {sorted(unknown)[0]!r}")
    return lambda fn: Autotuner(fn, configs, key, **options)


_OPTIONS = {
    "prune_configs_by",
    "reset_to_zero",
    "restore_value",
    "pre_hook",
    "post_hook",
    "warmup",
    "rep",
    "use_cuda_graph",
    "do_bench",
    "cache_results",
}


def heuristics(values: Mapping[str, Callable[[Mapping[str, Any]], Any]]) -> Callable[[Any], Heuristics]:
    """Gives a kernel meta-parameters that are functions of its arguments."""
    return lambda fn: Heuristics(fn, values)
