"""DeviceMesh: ranks in an array, with a process group along each axis of it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from torchemu.c10d.mesh_layout import Axis, Layout, joined, size_of, split
from torchemu.frontends.numpy._tensor import Tensor, tensor
from torchemu.frontends.numpy.distributed._mesh_arguments import (
    DEFAULT,
    Override,
    array_of,
    names_of,
    override_of,
    overrides_of,
)
from torchemu.frontends.numpy.distributed.distributed_c10d import (
    ProcessGroup,
    _abort_process_group,
    _get_default_group,
    _resolve_process_group,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
)
from torchemu.runtime.rank_local import RankLocal

__all__ = ["DeviceMesh", "init_device_mesh"]


def init_device_mesh(
    device_type: str,
    mesh_shape: Sequence[int],
    *,
    mesh_dim_names: Sequence[str] | None = None,
    backend_override: Mapping[int | str, Any] | None = None,
) -> DeviceMesh:
    """A mesh of the ranks 0, 1, 2, … in row-major order. All ranks call it, with the same arguments.

    Args:
        device_type: "cuda", "cpu", …; it means nothing here.
        mesh_shape: the sizes of the axes.
        mesh_dim_names: a name for each axis.
        backend_override: for axes, by index or name: a backend's name, options, or both in a tuple.

    Raises:
        RuntimeError: the arguments do not fit together, a size is below 1, or the mesh has more ranks than the world.
    """
    shape = tuple(mesh_shape)
    if any(size < 1 for size in shape):
        raise RuntimeError(f"mesh_shape must be of sizes from 1 on, not {shape}")
    names = names_of(mesh_dim_names, shape)
    if device_type and not device_type.isalpha():
        raise RuntimeError(
            f"Device type with index is not supported but got {device_type}. If you maintained a 'torch.device' "
            "object, it's recommended to pass in 'device.type'."
        )
    overrides = overrides_of(backend_override, len(shape), names)
    ranks = np.arange(math.prod(shape)).reshape(shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=names, backend_override=overrides)


class DeviceMesh:
    """Ranks in an array. Along each axis, the ranks that differ only in that coordinate have a process group.

    Args:
        device_type: "cuda", "cpu", …; it means nothing here.
        mesh: the ranks of the default group, as an array, a list of lists or a tensor; the same on all ranks.
        mesh_dim_names: a name for each axis.
        backend_override: a backend and its options for each axis.

    Raises:
        TypeError: no mesh.
        RuntimeError: the mesh has more ranks than the world.
        ValueError: a rank is in the mesh twice, or not of the default group; the overrides are not as many as the axes.

    Attributes:
        device_type: as given.
        mesh_dim_names: as given, or None.
    """

    _groups: list[ProcessGroup | None] | None  # by axis, those that this rank is in
    _root: DeviceMesh | None  # the mesh that this is a part of
    _flattened: dict[str, DeviceMesh]  # the flattened parts of a root, by name

    def __init__(
        self,
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
        backend_override: Sequence[Override] | None = None,
        _init_backend: bool = True,
        _rank: int | None = None,
    ) -> None:
        if mesh is None:
            raise TypeError("The mesh argument is required except for PRIVATE USAGE ONLY!")
        ranks = array_of(mesh)
        overrides = tuple(backend_override) if backend_override is not None else (DEFAULT,) * ranks.ndim
        if len(overrides) != ranks.ndim:
            raise ValueError(
                "backend_override should have the same length as the number of mesh dimensions, but got "
                f"{len(overrides)} and {ranks.ndim}."
            )
        self._hold(device_type, tuple(ranks.ravel().tolist()), Layout.of_shape(ranks.shape), mesh_dim_names)
        if _init_backend:
            if not is_initialized():
                init_process_group()
            self._check_size()
            self._groups = self._groups_along(0, overrides)
        self._rank = get_rank() if _rank is None else _rank

    def _hold(self, device_type: str, ranks: tuple[int, ...], layout: Layout, names: Sequence[str] | None) -> None:
        self.device_type, self._ranks, self._layout = device_type, ranks, layout
        self.mesh_dim_names = tuple(names) if names else None
        self._groups, self._root, self._flattened = None, None, {}

    def _derived(self, axes: Sequence[Axis], names: Sequence[str] | None) -> DeviceMesh:
        """Another mesh of the same root's ranks."""
        derived = DeviceMesh.__new__(DeviceMesh)
        derived._hold(self.device_type, self._ranks, Layout(tuple(axes)), names)
        derived._root, derived._rank = self._get_root_mesh(), self._rank
        return derived

    def _check_size(self) -> None:
        if len(self._ranks) > get_world_size():
            raise RuntimeError(
                f"Mesh should not be bigger than default world size {get_world_size()}, but found "
                f"{len(self._ranks)} ranks!"
            )
        if not all(0 <= rank < get_world_size() for rank in self._ranks):
            raise ValueError("The new group's rank should be within the world_size set by init_process_group")

    def _groups_along(self, first: int, overrides: Sequence[Override]) -> list[ProcessGroup | None]:
        """This rank's process groups along axes from the first on."""
        return [self._group_along(first + i, override) for i, override in enumerate(overrides)]

    def _group_along(self, axis: int, override: Override) -> ProcessGroup | None:
        """This rank's process group along an axis; None for a rank outside of the mesh. All ranks make all of them."""
        parts = Layout((self._layout.axes[axis],)).parts(len(self._ranks))
        if override == DEFAULT and self._layout.shape[axis] == get_world_size():
            return _get_default_group()
        backend, options = override
        name = self.mesh_dim_names[axis] if self.mesh_dim_names else f"dim_{axis}"
        mine = None
        for part in parts:
            members = [self._ranks[i] for i in part.flat]
            group = new_group(members, backend=backend, pg_options=options, group_desc=f"mesh_{name}")
            if get_rank() in members:
                mine = group
        return mine

    # -- what it looks like

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._layout.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._layout.shape

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of ranks, or the size of an axis."""
        return math.prod(self.shape) if mesh_dim is None else self.shape[mesh_dim]

    @property
    def mesh(self) -> Tensor:
        """The ranks; of a part of a mesh, those of the part that this rank is in."""
        return tensor(self._array().tolist(), dtype="int32", device="cpu")

    def _array(self) -> np.ndarray:
        parts = self._layout.parts(len(self._ranks))
        ranks = np.array(self._ranks)
        for part in parts:
            if len(parts) == 1 or self._rank in ranks[part]:
                return ranks[part]
        raise RuntimeError(
            "In order to get the mesh Tensor of a DeviceMesh it needs to either have all its original dimensions "
            "(e.g., no slicing) or it needs to contain the local rank"
        )

    def __repr__(self) -> str:
        shape = str(self.shape)
        if self.mesh_dim_names:
            shape = f"({', '.join(f'{n}={s}' for n, s in zip(self.mesh_dim_names, self.shape, strict=True))})"
        strides = self._layout.strides
        stride = strides[0] if self in self._get_root_mesh()._flattened.values() else strides
        text = f"DeviceMesh({shape}, '{self.device_type}', stride={stride}"
        if os.environ.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL":
            text += f", Mesh: {self._array().tolist()}"
        return text + ")"

    def _identity(self) -> tuple[Any, ...]:
        return self._ranks, self._layout, self.device_type, self.mesh_dim_names

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DeviceMesh) and self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash(self._identity())

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles are made of: groups, which cannot be copied, by their names."""
        state: dict[str, Any] = dict(self.__dict__)
        state["_groups"] = None if self._groups is None else [g and g.group_name for g in self._groups]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Finds this rank's groups of these names.

        Raises:
            RuntimeError: it has none of that name.
        """
        self.__dict__.update(state)
        if (names := state["_groups"]) is not None:
            self._groups = [_resolve_process_group(name) if name else None for name in names]

    # -- where this rank is in it

    def get_rank(self) -> int:
        """This rank's number in the default group."""
        return get_rank()

    def get_coordinate(self) -> tuple[int, ...] | None:
        """This rank's coordinates; None when it is not in the mesh."""
        if self._rank not in self._ranks:
            return None
        return tuple(np.argwhere(self._array() == self._rank)[0].tolist())

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """This rank's number in the process group along an axis, given by index or name."""
        return get_rank(self.get_group(mesh_dim))

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The process group along an axis, given by index or name; a mesh with one axis needs neither.

        Raises:
            RuntimeError: which axis?; the mesh has no groups; this rank is not in it.
            KeyError: there is no axis of the name.
        """
        if self._groups is None:
            raise RuntimeError("DeviceMesh process groups not initialized!")
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg `mesh_dim` needs to be specified "
                "when device_mesh.ndim > 1. If you want to get the list of all the ProcessGroups in the DeviceMesh, "
                "please use `get_all_groups()` instead."
            )
        flattened = self._get_root_mesh()._flattened.get(mesh_dim) if isinstance(mesh_dim, str) else None
        if flattened is not None and mesh_dim not in (self.mesh_dim_names or ()):
            return flattened.get_group()
        axis = self._axis(mesh_dim) if isinstance(mesh_dim, str) else mesh_dim or 0
        group = self._groups[axis]
        if group is None:
            raise RuntimeError(f"rank {self._rank} is not in {self!r}, so it has no process group along its axes")
        return group

    def get_all_groups(self) -> list[ProcessGroup]:
        """The process groups along all axes."""
        return [self.get_group(i) for i in range(self.ndim)]

    def abort(self) -> None:
        """Aborts this rank's groups along the axes, so that nobody waits for it there any more.

        Raises:
            RuntimeError: it is a part of another mesh.
        """
        if self._root is not None:
            raise RuntimeError("abort() is not supported on a submesh. Call abort() on the root mesh instead.")
        for group in dict.fromkeys(self.get_all_groups()):
            _abort_process_group(group)

    @property
    def _dim_group_names(self) -> list[str]:
        return [group.group_name for group in self._groups or () if group is not None]

    def _axis(self, name: str) -> int:
        if not self.mesh_dim_names:
            raise KeyError("No `mesh_dim_names` found.")
        if name not in self.mesh_dim_names:
            raise KeyError(
                f"Mesh dimension '{name}' does not exist. Available mesh dimensions are: "
                f"mesh_dim_names={self.mesh_dim_names}"
            )
        return self.mesh_dim_names.index(name)

    # -- parts of it

    def _get_root_mesh(self) -> DeviceMesh:
        """The mesh that this is a part of; itself when it is none."""
        return self._root or self

    def _get_root_mesh_dim(self) -> int | None:
        """The index in the root mesh of the only axis."""
        if not self.mesh_dim_names:
            return None
        if len(self.mesh_dim_names) != 1:
            raise AssertionError("The submesh can only be a 1D mesh.")
        return self._get_root_mesh()._axis(self.mesh_dim_names[0])

    def __getitem__(self, mesh_dim_names: str | tuple[str, ...]) -> DeviceMesh:
        """The mesh of some axes, through this rank.

        Raises:
            RuntimeError: the mesh has no names, or the axes share ranks.
            KeyError: there is no axis of a name; the order is not that of the mesh.
        """
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if names == self.mesh_dim_names:
            return self
        found = [self._along(name, names) for name in names]
        axes = [mesh._layout.axes[i] for mesh, i in found]
        strides = [axis[-1][1] for axis in axes]
        if strides != sorted(strides, reverse=True):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        part = self._derived(axes, names)
        if part._layout.overlaps():
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        if self._groups is not None:
            part._groups = [mesh._groups[i] for mesh, i in found if mesh._groups is not None]
        return part

    def _along(self, name: str, wanted: tuple[str, ...]) -> tuple[DeviceMesh, int]:
        """The mesh, this one or a flattened one, and its axis that has the name."""
        own = self.mesh_dim_names or ()
        if name in own:
            return self, own.index(name)
        if self._root is None and name in self._flattened:
            return self._flattened[name], 0
        valid = [*own, *(self._flattened if self._root is None else ())]
        raise KeyError(f"Invalid mesh_dim_names {wanted} specified. Valid mesh_dim_names are {valid}.")

    def _flatten(self, mesh_dim_name: str | None = None, backend_override: Any = None) -> DeviceMesh:
        """A mesh with one axis through all ranks of this one; the root mesh then has it too, under the name.

        Raises:
            RuntimeError: the mesh has no names.
            ValueError: the name is taken.
        """
        if not self.mesh_dim_names:
            raise RuntimeError("Cannot flatten a DeviceMesh without mesh_dim_names!")
        root, name = self._get_root_mesh(), mesh_dim_name or "_".join(self.mesh_dim_names)
        if self.mesh_dim_names == (name,):
            return self
        if name in (root.mesh_dim_names or ()):
            raise ValueError(
                f"{name} already exists for submesh of the {root}. The mesh_dim_names of submesh and flattened mesh "
                f"are {root.mesh_dim_names}. Please specify another valid mesh_dim_name."
            )
        axis = joined(self._layout.axes)
        before = root._flattened.get(name)
        if before is not None and before._layout.axes == (axis,):
            return before
        if before is not None:
            raise ValueError(
                f"Flatten mesh with mesh_dim_name {name} has been created before, Please specify another valid "
                "mesh_dim_name."
            )
        flat = self._derived([axis], (name,))
        flat._groups = flat._groups_along(0, [DEFAULT if backend_override is None else override_of(backend_override)])
        root._flattened[name] = flat
        return flat

    def _unflatten(
        self,
        dim: int | str,
        mesh_sizes: Sequence[int],
        mesh_dim_names: Sequence[str],
        backend_override: Mapping[int | str, Any] | None = None,
    ) -> DeviceMesh:
        """This mesh with one axis split into several.

        Raises:
            RuntimeError: there are not as many names as sizes.
            ValueError: there is no such axis, or the sizes do not make up its size.
        """
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        if isinstance(dim, int) and dim >= self.ndim:
            raise ValueError(f"dim {dim} specified in `_unflatten` is out of range {self.ndim}")
        if isinstance(dim, str) and dim not in (self.mesh_dim_names or ()):
            raise ValueError(f"dim {dim} specified in `_unflatten` is not in {self.mesh_dim_names}")
        i = self._axis(dim) if isinstance(dim, str) else dim
        old = self._layout.axes[i]
        if math.prod(mesh_sizes) != size_of(old):
            raise ValueError(
                f"The product of mesh_sizes={tuple(mesh_sizes)} is {math.prod(mesh_sizes)}, but the original dimension "
                f"at dim={i} has size {size_of(old)}. These must be equal for unflatten to work correctly."
            )
        axes, names = list(self._layout.axes), list(self.mesh_dim_names or (f"dim_{k}" for k in range(self.ndim)))
        axes[i : i + 1], names[i : i + 1] = split(old, mesh_sizes), mesh_dim_names
        finer = self._derived(axes, names)
        if self._groups is not None:
            new = finer._groups_along(i, overrides_of(backend_override, len(mesh_sizes), mesh_dim_names))
            finer._groups = [*self._groups[:i], *new, *self._groups[i + 1 :]]
        return finer

    @staticmethod
    def _concatenate(device_mesh_list: Sequence[DeviceMesh]) -> DeviceMesh:
        """The mesh of all axes of parts of one mesh."""
        first = device_mesh_list[0]
        if any(mesh._ranks != first._ranks for mesh in device_mesh_list):
            raise RuntimeError("Cannot concatenate DeviceMeshes derived from different device meshs")
        axes = [axis for mesh in device_mesh_list for axis in mesh._layout.axes]
        whole = first._derived(axes, [name for mesh in device_mesh_list for name in mesh.mesh_dim_names or ()])
        if whole._layout.overlaps():
            raise RuntimeError(f"Cannot concatenate overlapping meshes: {list(device_mesh_list)}")
        whole._groups = [group for mesh in device_mesh_list for group in mesh._groups or ()]
        return whole

    def _get_all_submeshes(self, mesh_dim_name: str) -> list[DeviceMesh]:
        """All meshes along an axis, whoever is in them."""
        i = self._axis(mesh_dim_name)
        meshes = []
        for part in Layout((self._layout.axes[i],)).parts(len(self._ranks)):
            ranks = [self._ranks[position] for position in part]
            mesh = DeviceMesh(self.device_type, ranks, mesh_dim_names=(mesh_dim_name,), _init_backend=False)
            mesh._groups = [self._groups[i] if self._groups is not None and self._rank in ranks else None]
            meshes.append(mesh)
        return meshes

    @staticmethod
    def from_group(
        group: ProcessGroup | Sequence[ProcessGroup],
        device_type: str,
        mesh: Any = None,
        *,
        mesh_dim_names: Sequence[str] | None = None,
    ) -> DeviceMesh:
        """A mesh of process groups that exist: one for each axis.

        Args:
            group: the group, or one for each axis; then the mesh and the names have to be given too.
            device_type, mesh, mesh_dim_names: as for DeviceMesh.

        Raises:
            ValueError: the mesh does not fit the groups, or something is missing.
        """
        groups = [group] if isinstance(group, ProcessGroup) else list(group)
        if isinstance(group, ProcessGroup):
            members = get_process_group_ranks(group)
            if mesh is not None and array_of(mesh).tolist() != members:
                raise ValueError(f"Invalid mesh {mesh} for ProcessGroup with ranks {members}")
            mesh = members
        elif not groups:
            raise ValueError("Expects at least one ProcessGroup to be passed")
        elif mesh is None or mesh_dim_names is None:
            missing = "mesh" if mesh is None else "mesh_dim_names"
            raise ValueError(f"Must pass {missing} if passing multiple ProcessGroups")
        elif array_of(mesh).ndim != len(groups):
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {array_of(mesh).tolist()} and "
                f"{len(groups)} ProcessGroups"
            )
        made = DeviceMesh(device_type, mesh, mesh_dim_names=mesh_dim_names, _init_backend=False)
        made._groups = list(groups)
        return made

    # -- as the current mesh

    def __enter__(self) -> DeviceMesh:
        _mesh_resources.stack.get().append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _mesh_resources.stack.get().pop()


class _MeshResources:
    """Which mesh is the current one of a rank: the last that was entered."""

    def __init__(self) -> None:
        self.stack: RankLocal[list[DeviceMesh]] = RankLocal(list)

    def get_current_mesh(self) -> DeviceMesh:
        """The current mesh.

        Raises:
            RuntimeError: there is none.
        """
        stack = self.stack.get()
        if not stack:
            raise RuntimeError("No device mesh is currently active!")
        return stack[-1]


_mesh_resources = _MeshResources()
