"""Changes of a run to PyTorch: groups, stores and backends by the names that programs use."""

from __future__ import annotations

import functools
import importlib
import os
import sys
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NoReturn

import torch
import torch.distributed as dist
from torch._subclasses import fake_tensor
from torch.distributed import distributed_c10d as c10d

from torchemu import errors, runtime
from torchemu.c10d import flight_files, flight_recorder
from torchemu.c10d.hooks import NanCheckHook, detach
from torchemu.frontends.torch import (
    buffers,
    checkpoints,
    checks,
    compilers,
    databases,
    detailed,
    device,
    device_commands,
    extensions,
    first_loads,
    futures,
    hooked,
    hooks,
    host_hooks,
    host_tensors,
    import_locks,
    instances,
    launching,
    libraries,
    loading,
    membership,
    nccl_methods,
    normalizing,
    offloading,
    packages,
    profiles,
    program_groups,
    reducers,
    registries,
    scripts,
    session,
    spawning,
    state,
    stores,
    suspicions,
    switches,
    symmetric,
    workers,
)
from torchemu.frontends.torch.batches import batching, in_place
from torchemu.frontends.torch.groups import AhbmGroup
from torchemu.frontends.torch.issuing import DEFAULT
from torchemu.frontends.torch.nccl_methods import NcclMethods
from torchemu.frontends.torch.rpc import installing as rpc
from torchemu.frontends.torch.session import Session
from torchemu.multiprocessing import _helper
from torchemu.runtime import files, group_makers
from torchemu.runtime.rank_local import RankLocal


def install(run: Session, seed: int) -> None:
    """Makes PyTorch that of the run's ranks, whose generators have this seed, until it ends."""
    state.install(run, seed)
    own = switches.install(run)
    hooks.install(run)
    nccl_methods.install(run)
    libraries.install(run)
    registries.install(run)
    databases.install(run)
    _install_futures(run)
    _install_stores(run)
    _install_backends(run)
    _install_errors(run)
    _install_recorder(run)
    _install_refusals(run)
    launching.install(run)
    profiles.install(run)
    _install_devices(run)
    reducers.install(run)
    compilers.install(run)
    spawning.install(run)
    checkpoints.install(run)
    loading.install(run)
    rpc.install(run)
    instances.install(run)
    packages.install(run, first_loads.install(run, own))
    import_locks.install(run)
    workers.install(run)
    _install_numbers(run)
    buffers.install(run)


def _refused_without_data(name: str) -> Callable[..., NoReturn]:
    """A function of torch.distributed.checkpoint, which has nothing to work on."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        word = "load" if name == "load" else "store"
        raise device.timing.lacking(f"torch.distributed.checkpoint.{name}: what it would {word} are elements")

    return refuse


_OF_OBJECTS = (
    "all_gather_object", "gather_object", "scatter_object_list", "broadcast_object_list", "send_object_list",
    "recv_object_list",
)  # fmt: skip
"""Functions that send what is no tensor: in runs without data they send it all the same."""


def _send_with_elements(run: Session, module: Any) -> None:
    """Lets ZeroRedundancyOptimizer send states of optimizers, which it does as bytes on devices, without data, too."""
    run.replace(module, "_broadcast_object", device.timing.with_elements(module._broadcast_object))


def _draw_by_generators(run: Session, module: Any) -> None:
    """Lets DTensor's tracker of random numbers know the generators of devices that programs pass."""
    tracker = module.OffsetBasedRNGTracker
    run.replace(tracker, "_distribute_region", device.generators.given(tracker._distribute_region))


def _attend_by_flash(run: Session, module: Any) -> None:
    """Has attention of sequences of several lengths use FlashAttention's kernel, as without cuDNN: the other one is no
    operation of the CPU's, and newer versions prefer it."""
    run.replace(module, "_should_use_cudnn", lambda device_index: False)


def _refuse_estimates(run: Session, module: Any) -> None:
    """Refuses estimates of time, whose failure in the middle of an operation would end the process."""

    def refuse(self: Any, estimate_mode_type: str) -> NoReturn:
        raise NotImplementedError(
            f"RuntimeEstimator, {estimate_mode_type}: a simulated device has no driver to ask; a run with --no-data "
            "takes the time of the same operations"
        )

    run.replace(module.RuntimeEstimator, "__call__", refuse)


def _hash(tensors: Sequence[torch.Tensor]) -> int:
    """A number for what is in tensors, which torch.distributed logs where it is asked to say much."""
    return zlib.crc32(b"".join(t.cpu().contiguous().clone().view(torch.uint8).numpy().tobytes() for t in tensors))


def _number_steps(run: Session) -> None:
    """Lets optimizers read numbers of steps that have no elements."""
    for name, module in [*sys.modules.items()]:
        if name.startswith("torch.optim.") and hasattr(module, "_get_value"):
            run.replace(module, "_get_value", device.timing.numbers_of_steps(module._get_value))


def _install_devices(run: Session) -> None:
    """Gives ranks the simulated devices, unless the environment says that none are to be seen."""
    if device.visible.listed(os.environ.get("CUDA_VISIBLE_DEVICES")) == ():
        return
    device.install()
    normalizing.install()
    run.stack.callback(device.uninstall)
    run.on_begin.append(functools.partial(device.begin, data=run.data))
    run.on_end.append(device.end)
    device_commands.install(run)
    has_data = (lambda: True) if run.data else device.elements.are_kept
    host_tensors.install(run)
    suspicions.install(run)
    run.put_off = lambda work: device.goes_on(work) if has_data() else device.moves_nothing(work)
    run.before_use = lambda tensors: device.before_use(tensors) if has_data() else None
    run.on_load["torch.distributed._tools.runtime_estimator"] = functools.partial(_refuse_estimates, run)
    run.on_load["torch.distributed.tensor._random"] = functools.partial(_draw_by_generators, run)
    run.on_load["torch.nn.attention.varlen"] = functools.partial(_attend_by_flash, run)
    offloading.install(run)
    host_hooks.install(run)
    extensions.install(run)
    if not run.data:
        _number_steps(run)
        verify = device.timing.with_elements(dist._verify_params_across_processes)
        run.replace(
            dist,
            "_verify_params_across_processes",
            lambda group, tensors, *logger: verify(group, device.timing.standing_in(tensors), *logger),
        )
        run.replace(torch.Tensor, "__bool__", device.timing.truth)
        run.replace(torch.Tensor, "data", property(torch.Tensor.data.__get__, device.elements.set_data))
        can_set_data = device.elements.can_set_data(torch._has_compatible_shallow_copy_type)
        run.replace(torch, "_has_compatible_shallow_copy_type", can_set_data)
        tracker = importlib.import_module("torch.distributed.tensor._random").OffsetBasedRNGTracker
        run.replace(tracker, "__init__", device.timing.with_elements(tracker.__init__))  # compares states of generators
        zero = "torch.distributed.optim.zero_redundancy_optimizer"
        run.on_load[zero] = functools.partial(_send_with_elements, run)
        checkpoint = importlib.import_module("torch.distributed.checkpoint")
        for name in ("save", "async_save", "load"):
            run.replace(checkpoint, name, _refused_without_data(name))
        for name in _OF_OBJECTS:
            for module in (c10d, dist):
                run.replace(module, name, device.timing.with_elements(getattr(c10d, name)))
        run.replace(c10d, "_unpickler", device.elements.Unpickler)
    run.replace(torch._C._distributed_c10d, "_hash_tensors", _hash)
    run.replace(c10d, "_get_object_coll_device", _device_of_objects)
    run.replace(fake_tensor, "init_gpu_context", lambda device: None)  # which looks for CUDA's driver
    accelerator = torch._C._get_accelerator

    def get_accelerator(*args: Any) -> torch.device:
        group = c10d._world.default_pg
        return torch.device("cpu") if group is not None and backends(group) == {"gloo"} else accelerator(*args)

    batch = batching(c10d.batch_isend_irecv)
    for module in (c10d, dist):
        run.replace(module, "batch_isend_irecv", batch)
    functional = importlib.import_module("torch.distributed._functional_collectives")
    if hasattr(functional, "batch_p2p_ops_inplace"):
        run.replace(functional, "batch_p2p_ops_inplace", in_place)
    run.replace(torch._C, "_get_accelerator", get_accelerator)  # gloo's collectives are for the host's tensors
    run.is_on_host = device.places.is_on_host
    symmetric.install(run)
    scripts.install(run)


def _install_numbers(run: Session) -> None:
    """Gives PyTorch's own tests numbers of processes that differ, as programs get them."""
    real, tests = os.getpid, os.path.join(os.path.dirname(torch.__file__), "testing", "")

    def getpid() -> int:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(runtime.PACKAGE):
            frame = frame.f_back
        context = runtime.running()
        return real() if context is None or not frame.f_code.co_filename.startswith(tests) else context.pid

    run.replace(os, "getpid", getpid)


def _device_of_objects(group: Any = None) -> str:
    """Returns the device of objects that cross between ranks: the host on nccl, too, which spares copies."""
    return "cpu"


def _install_errors(run: Session) -> None:
    """Makes the exceptions that the core raises PyTorch's."""
    for name in ("DistError", "DistBackendError", "DistNetworkError", "DistStoreError"):
        run.replace(errors, name, getattr(dist, name))


def _install_recorder(run: Session) -> None:
    """Makes what dumps the flight recorder, which PyTorch has one of for each library, dump the running rank's."""
    if hasattr(torch._C, "_nccl_version"):
        version = ".".join(map(str, torch.cuda.nccl.version()))
        run.replace(flight_recorder, "comm_lib_version", version)
    run.replace(torch._C._distributed_c10d, "_reset_fr_recording_nccl", flight_files.reset_trace)
    for library in ("fr", "nccl"):
        run.replace(torch._C._distributed_c10d, f"_dump_{library}_trace", flight_files.dump_trace)
        run.replace(torch._C._distributed_c10d, f"_dump_{library}_trace_json", flight_files.dump_trace_json)


def _install_refusals(run: Session) -> None:
    """Lets what has no part in a simulated cluster say so in a line."""

    def watch(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError(
            "torch.distributed._watchdog: it looks at events by a thread and a clock of the system's; timeouts of "
            "process groups pass in simulated time, and what nobody can end is reported as a deadlock"
        )

    run.on_load["torch.distributed._watchdog"] = lambda module: run.replace(module._Watchdog, "__init__", watch)


def _install_futures(run: Session) -> None:
    run.replace(torch._C.Future, "wait", futures.wait)
    run.replace(torch._C.Future, "done", futures.done)
    run.replace(torch._C, "_collect_all", futures.collecting(torch._C._collect_all))


def _install_stores(run: Session) -> None:
    rendezvous = importlib.import_module("torch.distributed.rendezvous")
    for name in ("TCPStore", "FileStore", "HashStore", "PrefixStore"):
        for module in (c10d, dist, rendezvous, torch._C._distributed_c10d):
            if hasattr(module, name):
                run.replace(module, name, getattr(stores, name))
    run.replace(rendezvous, "_create_c10d_store", stores.at_rendezvous(rendezvous._create_c10d_store))


_UNDEFINED = -(1 << 31)
"""The number by which NCCL knows what nobody has set."""


class NCCLConfig:
    """Settings of NCCL, which hold what they are given and have no effect."""

    blocking = cga_cluster_size = collnet_enable = cta_policy = max_ctas = min_ctas = _UNDEFINED
    nvls_ctas = split_share = traffic_class = _UNDEFINED
    net_name: str | None = None


class _Options:
    """Options of a backend, which hold what they are given.

    Args:
        is_high_priority_stream: of nccl's.
    """

    backend, split_color, split_from = "nccl", -2, None

    def __init__(self, is_high_priority_stream: bool = False) -> None:
        self.is_high_priority_stream = is_high_priority_stream
        self.config = NCCLConfig()
        self.global_ranks_in_group: list[int] = []
        self.group_name = ""
        self._timeout = timedelta(minutes=10)


class _GlooOptions(_Options):
    """Options of gloo."""

    backend, threads = "gloo", 2

    @property
    def devices(self) -> list[Any]:
        """Devices of a network, of which there are none."""
        return []


def _limit(options: Any, timeout: timedelta | None) -> timedelta | None:
    """The time that operations may take, which is the options', or takes their place."""
    return timeout if options is None else getattr(options, "_timeout", options)


def _check_stays(enable_reconfigure: bool) -> None:
    """Refuses to make a group that could get other members."""
    if enable_reconfigure:
        raise NotImplementedError("groups whose members change (enable_reconfigure) are not simulated")


class ProcessGroupGloo(AhbmGroup):
    """A group that the program has asked for as gloo."""

    Options = _Options = _GlooOptions

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        options: Any = None,
        timeout: timedelta | None = None,
        enable_reconfigure: bool = False,
    ) -> None:
        _check_stays(enable_reconfigure)
        super().__init__(store, rank, _asked(store, rank, size), "gloo", _limit(options, timeout))
        group_makers.note(self.membership.handle, self.membership.name, self.membership.members)
        self._take_options(options if isinstance(options, _GlooOptions) else _GlooOptions())

    @staticmethod
    def create_device(hostname: str = "", interface: str = "", lazy_init: Any = None) -> object:
        """A device of a network, which nobody needs here."""
        return object()

    create_default_device = create_device


_uids: RankLocal[list[int]] = RankLocal(list)
"""The numbers of the groups that a rank has made as nccl."""


class ProcessGroupNCCL(NcclMethods):
    """A group that the program has asked for as nccl."""

    Options = _Options
    NCCLConfig = NCCLConfig

    def __init__(self, store: Any, rank: int, size: int, options: Any = None, timeout: timedelta | None = None) -> None:
        _check_stays(getattr(options, "enable_reconfigure", False))
        super().__init__(store, rank, _asked(store, rank, size), "nccl", _limit(options, timeout))
        self._take_options(options if isinstance(options, _Options) else _Options())
        self.uid = len(_uids.get())
        """The group's number among those that the rank has made."""
        _uids.get().append(self.uid)

    NCCL_CTA_POLICY_DEFAULT, NCCL_CTA_POLICY_EFFICIENCY, NCCL_CTA_POLICY_ZERO = range(3)

    @staticmethod
    def get_build_nccl_version() -> tuple[int, ...]:
        """The version of the NCCL that the installed PyTorch has."""
        return tuple(torch.cuda.nccl.version())

    get_runtime_nccl_version = get_build_nccl_version

    def _is_initialized(self) -> bool:
        return self.is_connected or self.collectives(on_host=False) > 0

    def _set_enable_nan_check(self, enable_nan_check: bool) -> None:
        if enable_nan_check:
            NanCheckHook.attach(self)
        else:
            detach(self, NanCheckHook)

    mem_allocator = None
    """NCCL's allocator of a pool's memory. None is needed: a device's memory is as it has to be."""

    def register_mem_pool(self, pool: Any, symm: bool = False) -> None:
        """Accepts a pool (`torch.cuda.MemPool`) whose memory collectives use as it is: they do with all memory."""

    def deregister_mem_pool(self, pool: Any) -> None:
        """Acts as register_mem_pool."""


class ProcessGroupNCCL2(ProcessGroupNCCL):
    """A group of what newer versions of PyTorch make for nccl. The device that these guess, by the local rank, is not
    one that the program has named."""

    def __init__(self, store: Any, rank: int, size: int, options: Any = None, device_id: Any = None) -> None:
        super().__init__(store, rank, size, options)


def _kinds() -> dict[str, type[AhbmGroup]]:
    """The classes of groups that the installed PyTorch makes, by their names there."""
    kinds: dict[str, type[AhbmGroup]] = {"ProcessGroupGloo": ProcessGroupGloo, "ProcessGroupNCCL": ProcessGroupNCCL}
    if hasattr(c10d, "_create_nccl2_process_group"):
        kinds |= {"ProcessGroupNCCL2": ProcessGroupNCCL2, "ProcessGroupNCCLLazy": ProcessGroupNCCL2}
    return kinds


_asking: list[tuple[list[int], str, bool]] = []
"""The ranks and the name of the group that is being made, and whether devices have a backend of their own in it."""


def _asked(store: Any, rank: int, size: int) -> membership.Membership:
    """The membership of the group that is being made."""
    ranks, name, is_parted = _asking[-1] if _asking else ([], "default_pg", False)
    if ranks:
        return membership.shared(name, ranks, is_parted=is_parted)
    return membership.default(name, store, rank, size, is_parted)


def backends(group: Any) -> set[str]:
    """Returns the names of the backends that a program has asked for a group."""
    return {part.partition(":")[2] for part in c10d._world.pg_backend_config.get(group, "").split(",")}


def _releasing(update: Callable[[Any], None]) -> Callable[[Any], None]:
    """c10d's function that sets the default group. With the last one of all groups goes its store: a master's port is
    free for the next."""

    def update_default(group: Any) -> None:
        _, store = c10d._world.pg_map.get(c10d._world.default_pg, (None, None))
        update(group)
        if group is None:
            stores.release(store)

    return update_default


def _writing(make: Callable[..., Any]) -> Callable[..., Any]:
    """PyTorch's function that begins to write a file, which it does in C++."""

    def begin(name_or_buffer: Any) -> Any:
        files.note_written(name_or_buffer)
        return make(name_or_buffer)

    return begin


def _noting(make: Callable[..., Any]) -> Callable[..., Any]:
    """c10d's function that makes groups, which says whose, and binds a group to the device that it is given: PyTorch
    forgets that of groups of other backends than its own."""

    def make_group(
        group_size: int, group_rank: int, ranks: Any, backend: Any, store: Any, name: str, *args: Any, **kwargs: Any
    ) -> Any:
        _helper.check_may_join()
        if ranks and "nccl" in backend:
            _note_split()
        if ranks and str(name).isdecimal():  # names of groups that only members make are made of their ranks
            membership.agree(str(name), ranks)
        parts = set(c10d.BackendConfig(backend).get_device_backend_map().values())
        _asking.append((list(ranks), str(name), len(parts) > 1))
        try:
            before = stores.kept()
            made = make(group_size, group_rank, ranks, backend, store, name, *args, **kwargs)
            if isinstance(made[0], AhbmGroup):
                made[0].prefixes = stores.prefixes_since(before)
                if kwargs.get("device_id") is not None:
                    made[0].bound_device_id = kwargs["device_id"]
                if c10d.get_debug_level() == dist.DebugLevel.DETAIL and c10d._GLOO_AVAILABLE:
                    _wrapped(made[0], str(name), store, group_rank, group_size, made[0].timeout)
            return made
        finally:
            _asking.pop()

    return make_group


def _note_split() -> None:
    """Notes that NCCL would split a group off from the default one, where this is bound to a device."""
    whole = c10d._world.default_pg
    if isinstance(whole, ProcessGroupNCCL) and whole.bound_device_id is not None:
        whole.made_of_it += 1


def _create_ahbm(about: Any, options: Any = None) -> AhbmGroup:
    """Makes a group of the backend ahbm."""
    session.current()  # says where groups can be made
    store, rank = about.store, about.group_rank
    group = AhbmGroup(store, rank, _asked(store, rank, about.group_size), "ahbm", about.timeout)
    group._take_options(options or _Options())
    return group


class _OwnSys:
    """The module sys, for c10d: what it sets there, a hook that prints exceptions again, it alone has."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys, name)


def _install_backends(run: Session) -> None:
    register()
    hooked.install(run)
    run.replace(c10d, "sys", _OwnSys())
    if run.world.calls is not None:  # ranks that another one stands for do not come
        run.replace(c10d, "_store_based_barrier", lambda *_, **__: None)
    run.replace(c10d, "_get_split_source", lambda *_: None)  # a group's members know it without another group
    run.replace(torch.serialization, "_open_zipfile_writer", _writing(torch.serialization._open_zipfile_writer))
    run.replace(c10d, "_new_process_group_helper", _noting(c10d._new_process_group_helper))
    run.replace(c10d, "_update_default_pg", _releasing(c10d._update_default_pg))
    program_groups.install(run, lambda: bool(_asking))
    for name, kind in _kinds().items():
        for module in (c10d, dist, torch._C._distributed_c10d):
            run.replace(module, name, kind)
    run.replace(c10d, "_NCCL_AVAILABLE", True)
    run.replace(c10d, "_GLOO_AVAILABLE", True)
    for module in (c10d, dist):
        run.replace(module, "_create_process_group_wrapper", _wrapped)
    for module in (c10d, dist):
        run.replace(module, "is_nccl_available", lambda: True)
        run.replace(module, "is_gloo_available", lambda: True)


def _wrapped(
    wrapped_pg: Any, store_prefix: str, store: Any, rank: int, world_size: int, timeout: timedelta = DEFAULT
) -> Any:
    """Lets a group compare what its ranks call; not where ranks stand for others, which do not come.

    Raises:
        AssertionError: the program has it that there is no gloo.
    """
    if not c10d._GLOO_AVAILABLE:
        raise AssertionError("ProcessGroupWrapper unsupported without GLOO backend.")
    if isinstance(wrapped_pg, AhbmGroup) and session.current().world.calls is None:
        of = wrapped_pg.membership
        beside = membership.shared(f"{of.name}/meeting", of.members, are_world_ranks=True)
        gloo = AhbmGroup(dist.PrefixStore(f"{store_prefix}/meeting", store), rank, beside, "gloo", timeout)
        wrapped_pg.meeting = detailed.Meeting(wrapped_pg, gloo, checks.duration(timeout))
    return wrapped_pg


def register() -> None:
    """Makes the backend ahbm known to PyTorch."""
    if "AHBM" not in dist.Backend._plugins:
        dist.Backend.register_backend("ahbm", _create_ahbm, extended_api=True, devices=["cpu", "cuda"])
