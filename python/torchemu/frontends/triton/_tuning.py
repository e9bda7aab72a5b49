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
    """A kernel with several configurations. Arguments and attributes are Triton's, for classes that programs derive.

    Attributes:
        configs: these.
        keys: the arguments on which the choice depends.
        reset_to_zero, restore_value: arguments that are zeroed, or put back, when a configuration has been tried.
        pre_hook, post_hook: called before and after a trial, with the arguments; before the first launch for new values
            of the keys with reset_only.
        user_defined_pre_hook, user_defined_post_hook: whether these are the program's.
        early_config_prune, perf_model, configs_top_k: what leaves configurations out.
        best_config: the one that ran last.
        cache: those that were chosen, by the values of the keys and the types of the arguments.
    """

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str] | None,
        reset_to_zero: Sequence[str] | None,
        restore_value: Sequence[str] | None,
        pre_hook: Callable[..., Any] | None = None,
        post_hook: Callable[..., Any] | None = None,
        prune_configs_by: Mapping[str, Any] | None = None,
        warmup: int | None = None,
        rep: int | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., Any] | None = None,
        cache_results: bool = False,
    ) -> None:
        super().__init__(fn)
        self.arg_names = list(arg_names)
        self.configs = list(configs) or [Config({})]
        self.keys = list(key or ())
        self.reset_to_zero, self.restore_value = list(reset_to_zero or ()), list(restore_value or ())
        self.user_defined_pre_hook, self.user_defined_post_hook = pre_hook is not None, post_hook is not None
        self.pre_hook: Callable[..., Any] = pre_hook or self._prepare
        self.post_hook: Callable[..., Any] = post_hook or self._put_back
        prune = prune_configs_by or {}
        self.early_config_prune = prune.get("early_config_prune")
        self.perf_model, self.configs_top_k = prune.get("perf_model"), prune.get("top_k", 1.0)
        self.restore_copies: dict[str, Any] = {}
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
            if config.pre_hook is not None:
                config.pre_hook({**named, **config.all_kwargs()})
            return self.fn.run(*args, grid=grid, warmup=warmup, **{**config.all_kwargs(), **kwargs})

        self.best_config = self.configs[0] if len(self.configs) == 1 else self._chosen(named, launch, warmup)
        return launch(self.best_config)

    def _chosen(self, named: Mapping[str, Any], launch: Callable[[Config], Any], warmup: bool) -> Config:
        """The configuration for such arguments: as before, or the fastest where the run asks for that."""
        kinds = [str(value.dtype) for value in named.values() if hasattr(value, "dtype")]
        key = (*(named.get(name) for name in self.keys), *kinds)
        if key not in self.cache:
            left = self._left(named)
            if warmup:
                return left[0]
            if len(left) > 1 and runtime.current_world().autotunes:
                times = [self._time(named, config, functools.partial(launch, config)) for config in left]
                self.cache[key] = left[times.index(min(times))]
            else:
                self.cache[key] = left[0]
            self.pre_hook({**named, **self.cache[key].all_kwargs()}, reset_only=True)
        return self.cache[key]

    def _left(self, named: Mapping[str, Any]) -> list[Config]:
        """The configurations that pruning leaves."""
        early = self.early_config_prune
        left = list(early(self.configs, named, **named)) if early is not None else self.configs
        if self.perf_model is not None:
            model, most = self.perf_model, self.configs_top_k
            most = int(len(self.configs) * most) if isinstance(most, float) else most
            left = sorted(left, key=lambda config: model(**{**named, **config.all_kwargs()}))[:most]
        return left or self.configs[:1]

    def _prepare(self, named: Mapping[str, Any], reset_only: bool = False) -> None:
        for name in self.reset_to_zero:
            named[name].zero_()
        if not reset_only:
            self.restore_copies = {name: named[name].clone() for name in self.restore_value}

    def _put_back(self, named: Mapping[str, Any], exception: BaseException | None) -> None:
        for name, value in self.restore_copies.items():
            named[name].copy_(value)
        self.restore_copies = {}

    def _time(self, named: Mapping[str, Any], config: Config, launch: Callable[[], Any]) -> int:
        """The simulated picoseconds of a launch, for which tensors are zeroed or put back as the decorator says."""
        whole = {**named, **config.all_kwargs()}
        self.pre_hook(whole)
        context = runtime.current()
        context.synchronize()
        start = Handle(go.StreamRecord(context.stream))
        launch()
        stop = Handle(go.StreamRecord(context.stream))
        context.wait(stop.number)
        self.post_hook(whole, exception=None)
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
    both = {"reset_to_zero": None, "restore_value": None, **options}
    return lambda fn: Autotuner(fn, fn.arg_names, configs, key, **both)


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
