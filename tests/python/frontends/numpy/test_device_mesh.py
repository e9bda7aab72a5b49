"""DeviceMesh: who is in which group, slices of it, and what is refused. The oracle counts coordinates by hand."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from conftest import OpenWorld
from ranks import SIXTY_FOUR, on_ranks

import torchemu as torch
import torchemu.distributed as dist
from torchemu.c10d.mesh_layout import Layout, joined, size_of, split
from torchemu.distributed.device_mesh import DeviceMesh, _mesh_resources, init_device_mesh

SHAPES = [(1,), (2,), (7,), (2, 2), (4, 1), (2, 3), (2, 2, 2), (4, 4), (3, 1, 2), (8, 8), (2, 4, 8)]
NAMES = "abcd"


def coordinates(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """Those of all ranks, in the order of the ranks."""
    return list(itertools.product(*map(range, shape)))


def along(shape: Sequence[int], rank: int, axes: Sequence[int]) -> list[int]:
    """The ranks that differ from a rank only in the coordinates of these axes, in order."""
    all_of_them = coordinates(shape)
    fixed = [i for i in range(len(shape)) if i not in axes]
    return [r for r, c in enumerate(all_of_them) if all(c[i] == all_of_them[rank][i] for i in fixed)]


def on_mesh(shape: Sequence[int], fn: Callable[[int, DeviceMesh], Any], **options: Any) -> list[Any]:
    """What fn(rank, mesh) returns on each rank of a named mesh that fills the world."""

    def program(rank: int) -> Any:
        dist.init_process_group("nccl")
        mesh = init_device_mesh("cuda", tuple(shape), mesh_dim_names=tuple(NAMES[: len(shape)]), **options)
        return fn(rank, mesh)

    return on_ranks(math.prod(shape), program)


@pytest.fixture(autouse=True)
def _world(open_world: OpenWorld) -> None:
    open_world(SIXTY_FOUR)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
class TestEveryShape:
    def test_where_a_rank_is(self, shape: tuple[int, ...]) -> None:
        def look(rank: int, mesh: DeviceMesh) -> list[Any]:
            local = [mesh.get_local_rank(i) for i in range(mesh.ndim)]
            assert local == [mesh.get_local_rank(name) for name in NAMES[: len(shape)]]
            assert (mesh.size(), mesh.shape, mesh.ndim) == (math.prod(shape), shape, len(shape))
            assert [mesh.size(i) for i in range(mesh.ndim)] == list(shape)
            assert mesh.get_rank() == rank
            assert mesh.mesh.tolist() == np.arange(math.prod(shape)).reshape(shape).tolist()
            return [mesh.get_coordinate(), local]

        assert on_mesh(shape, look) == [[c, list(c)] for c in coordinates(shape)]

    def test_groups_along_axes(self, shape: tuple[int, ...]) -> None:
        def look(rank: int, mesh: DeviceMesh) -> list[list[int]]:
            groups = [mesh.get_group(name) for name in NAMES[: len(shape)]]
            assert mesh.get_all_groups() == groups
            assert mesh._dim_group_names == [group.group_name for group in groups]
            return [dist.get_process_group_ranks(group) for group in groups]

        expected = [[along(shape, r, [i]) for i in range(len(shape))] for r in range(math.prod(shape))]
        assert on_mesh(shape, look) == expected

    def test_a_collective_stays_in_its_row(self, shape: tuple[int, ...]) -> None:
        def add(rank: int, mesh: DeviceMesh) -> list[float]:
            sums = []
            for i in range(mesh.ndim):
                t = torch.full((1,), float(rank))
                dist.all_reduce(t, group=mesh.get_group(i))
                sums.append(t.item())
            return sums

        expected = [[float(sum(along(shape, r, [i]))) for i in range(len(shape))] for r in range(math.prod(shape))]
        assert on_mesh(shape, add) == expected

    def test_slices(self, shape: tuple[int, ...]) -> None:
        choices = [c for n in range(1, len(shape) + 1) for c in itertools.combinations(range(len(shape)), n)]

        def look(rank: int, mesh: DeviceMesh) -> list[Any]:
            seen = []
            for axes in choices:
                names = tuple(NAMES[i] for i in axes)
                part = mesh[names if len(names) > 1 else names[0]]
                assert part.mesh_dim_names == names
                assert part.shape == tuple(shape[i] for i in axes)
                assert [part.get_group(i) for i in range(part.ndim)] == [mesh.get_group(i) for i in axes]
                assert part._get_root_mesh() is mesh
                seen.append((part.mesh.tolist(), part.get_coordinate()))
            return seen

        expected = []
        for r, c in enumerate(coordinates(shape)):
            rows = []
            for axes in choices:
                ranks = np.array(along(shape, r, axes)).reshape([shape[i] for i in axes])
                rows.append((ranks.tolist(), tuple(c[i] for i in axes)))
            expected.append(rows)
        assert on_mesh(shape, look) == expected

    def test_flattened(self, shape: tuple[int, ...]) -> None:
        choices = [c for n in range(1, len(shape) + 1) for c in itertools.combinations(range(len(shape)), n)]

        def look(rank: int, mesh: DeviceMesh) -> list[list[int]]:
            seen = []
            for axes in choices:
                part = mesh[tuple(NAMES[i] for i in axes)]
                flat = part._flatten()
                name = "_".join(NAMES[i] for i in axes)
                assert flat.mesh_dim_names == (name,)
                assert part._flatten() is flat
                assert dist.get_process_group_ranks(flat.get_group()) == flat.mesh.tolist()
                assert mesh.get_group(name) is flat.get_group()
                assert mesh[name].mesh.tolist() == flat.mesh.tolist()
                assert flat.get_local_rank() == flat.get_coordinate()[0]  # type: ignore[index]
                seen.append(flat.mesh.tolist())
            return seen

        expected = [[along(shape, r, axes) for axes in choices] for r in range(math.prod(shape))]
        assert on_mesh(shape, look) == expected


class TestMeshes:
    def test_a_mesh_in_any_order(self) -> None:
        ranks = [[5, 0, 3], [1, 4, 2]]

        def program(rank: int) -> tuple[Any, ...]:
            dist.init_process_group("gloo")
            mesh = DeviceMesh("cpu", ranks)
            groups = [dist.get_process_group_ranks(group) for group in mesh.get_all_groups()]
            return mesh.get_coordinate(), groups, mesh.get_local_rank(1)

        answers = on_ranks(6, program)
        for rank, (place, groups, local) in enumerate(answers):
            i, j = next((i, j) for i in range(2) for j in range(3) if ranks[i][j] == rank)
            assert place == (i, j)
            assert groups == [sorted(row[j] for row in ranks), sorted(ranks[i])]
            assert local == sorted(ranks[i]).index(rank), "groups have their ranks in order"

    @pytest.mark.parametrize("make", [np.array, torch.tensor, list], ids=["numpy", "tensor", "list"])
    def test_a_mesh_of_some_ranks(self, make: Callable[[Any], Any]) -> None:
        def program(rank: int) -> Any:
            dist.init_process_group("gloo")
            mesh = DeviceMesh("cpu", make([[1, 2], [4, 5]]), mesh_dim_names=("x", "y"))
            assert mesh.mesh.tolist() == [[1, 2], [4, 5]]
            if mesh.get_coordinate() is not None:
                return mesh.get_coordinate(), dist.get_process_group_ranks(mesh.get_group("x"))
            with pytest.raises(RuntimeError, match=rf"rank {rank} is not in DeviceMesh\(\(x=2, y=2\)"):
                mesh.get_group("x")
            with pytest.raises(RuntimeError, match="it needs to contain the local rank"):
                _ = mesh["x"].mesh
            return None

        outside, a, b, c, d = None, ((0, 0), [1, 4]), ((0, 1), [2, 5]), ((1, 0), [1, 4]), ((1, 1), [2, 5])
        assert on_ranks(6, program) == [outside, a, b, outside, c, d]

    def test_it_makes_the_default_group(self) -> None:
        def program(rank: int) -> bool:
            mesh = init_device_mesh("cuda", (4,))
            assert mesh.get_group() is dist.group.WORLD
            return dist.is_initialized()

        assert on_ranks(4, program) == [True] * 4

    def test_looks_and_equality(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def look(rank: int, mesh: DeviceMesh) -> None:
            assert repr(mesh) == "DeviceMesh((a=2, b=3), 'cuda', stride=(3, 1))"
            assert repr(mesh["b"]) == "DeviceMesh((b=3), 'cuda', stride=(1,))"
            assert repr(mesh._flatten()) == "DeviceMesh((a_b=6), 'cuda', stride=1)"
            plain = DeviceMesh("cuda", mesh.mesh)
            assert repr(plain) == "DeviceMesh((2, 3), 'cuda', stride=(3, 1))"
            again = init_device_mesh("cuda", (2, 3), mesh_dim_names=("a", "b"))
            assert (mesh == again, hash(mesh) == hash(again), mesh == plain, mesh == "mesh") == (
                True,
                True,
                False,
                False,
            )
            monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
            assert repr(again).endswith(", Mesh: [[0, 1, 2], [3, 4, 5]])")
            monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG")

        on_mesh((2, 3), look)

    def test_the_current_mesh_is_the_ranks_own(self) -> None:
        def look(rank: int, mesh: DeviceMesh) -> Any:
            with pytest.raises(RuntimeError, match="No device mesh is currently active!"):
                _mesh_resources.get_current_mesh()
            if rank == 0:
                dist.barrier()
                return None
            with mesh, mesh["b"] as row:
                dist.barrier()
                assert _mesh_resources.get_current_mesh() is row
            return _mesh_resources.stack.get()

        assert on_mesh((2, 2), look) == [None, [], [], []]

    def test_backends_of_axes(self) -> None:
        def look(rank: int, mesh: DeviceMesh) -> list[str]:
            return [dist.get_backend(group) for group in mesh.get_all_groups()]

        assert on_mesh((2, 2), look, backend_override={"a": "gloo"}) == [["gloo", "nccl"]] * 4
        assert on_mesh((2, 2), look, backend_override={1: ("gloo", None), 0: "nccl"}) == [["nccl", "gloo"]] * 4
        assert on_mesh((4,), look, backend_override={0: "gloo"}) == [["gloo"]] * 4

        def flatten(rank: int, mesh: DeviceMesh) -> str:
            return dist.get_backend(mesh._flatten("all", backend_override="gloo").get_group())

        assert on_mesh((2, 2), flatten) == ["gloo"] * 4

    def test_from_groups(self) -> None:
        def program(rank: int) -> Any:
            dist.init_process_group("gloo")
            rows = [dist.new_group([0, 1, 2]), dist.new_group([3, 4, 5])]
            columns = [dist.new_group([c, c + 3]) for c in range(3)]
            row, column = rows[rank // 3], columns[rank % 3]
            one = DeviceMesh.from_group(row, "cpu", mesh_dim_names=("row",))
            same = DeviceMesh.from_group(row, "cpu", mesh=torch.tensor(one.mesh.tolist()))
            both = DeviceMesh.from_group([column, row], "cpu", np.arange(6).reshape(2, 3), mesh_dim_names=("c", "r"))
            assert one.get_group() is same.get_group() is both.get_group("r") is row
            assert both["c"].get_group() is column
            return one.mesh.tolist(), one.get_local_rank(), both.get_coordinate()

        expected = [([r // 3 * 3 + i for i in range(3)], r % 3, (r // 3, r % 3)) for r in range(6)]
        assert on_ranks(6, program) == expected

    def test_all_submeshes(self) -> None:
        def look(rank: int, mesh: DeviceMesh) -> Any:
            parts = mesh._get_all_submeshes("a")
            assert [part.mesh.tolist() for part in parts] == [[0, 2], [1, 3]]
            mine = parts[rank % 2]
            assert mine.get_group() is mesh.get_group("a")
            with pytest.raises(RuntimeError, match=f"rank {rank} is not in"):
                parts[1 - rank % 2].get_group()
            return mesh["b"]._get_root_mesh_dim()

        assert on_mesh((2, 2), look) == [1] * 4


class TestUnflattenAndConcatenate:
    def test_unflatten_the_world(self) -> None:
        def look(rank: int, mesh: DeviceMesh) -> Any:
            fine = mesh._unflatten(0, (2, 3, 2), ("x", "y", "z"))
            assert fine.mesh.tolist() == np.arange(12).reshape(2, 3, 2).tolist()
            assert fine["x", "z"].mesh.tolist() == np.arange(12).reshape(2, 3, 2)[:, rank // 2 % 3].tolist()
            return [dist.get_process_group_ranks(group) for group in fine.get_all_groups()]

        assert on_mesh((12,), look) == [[along((2, 3, 2), r, [i]) for i in range(3)] for r in range(12)]

    def test_unflatten_an_axis_of_several(self) -> None:
        def look(rank: int, mesh: DeviceMesh) -> Any:
            flat = mesh["a", "c"]._flatten("ac")
            fine = flat._unflatten("ac", (4, 2), ("p", "q"), backend_override={"q": "gloo"})
            assert [dist.get_backend(group) for group in fine.get_all_groups()] == ["nccl", "gloo"]
            return fine.mesh.tolist()

        shape = (2, 2, 4)
        expected = [np.array(along(shape, r, [0, 2])).reshape(4, 2).tolist() for r in range(16)]
        assert on_mesh(shape, look) == expected

    def test_concatenate(self) -> None:
        def look(rank: int, mesh: DeviceMesh) -> Any:
            whole = DeviceMesh._concatenate([mesh["a"], mesh["c"]])
            assert whole.get_all_groups() == [mesh.get_group("a"), mesh.get_group("c")]
            with pytest.raises(RuntimeError, match="Cannot concatenate overlapping meshes"):
                DeviceMesh._concatenate([mesh["a"], mesh["a", "b"]])
            with pytest.raises(RuntimeError, match="derived from different device meshs"):
                DeviceMesh._concatenate([mesh["a"], DeviceMesh("cuda", [0, 1, 2, 3], mesh_dim_names=("x",))])
            return whole.mesh.tolist()

        expected = [np.array(along((2, 2, 2), r, [0, 2])).reshape(2, 2).tolist() for r in range(8)]
        assert on_mesh((2, 2, 2), look) == expected

    def test_sizes_that_do_not_fit(self) -> None:
        def look(rank: int, mesh: DeviceMesh) -> None:
            for dim, sizes, names, kind, text in [
                (
                    0,
                    (2,),
                    ("x", "y"),
                    RuntimeError,
                    "mesh_dim_names must have same length as mesh_sizes in _unflatten!",
                ),
                (3, (2, 2), ("x", "y"), ValueError, "dim 3 specified in `_unflatten` is out of range 1"),
                ("z", (2, 2), ("x", "y"), ValueError, r"dim z specified in `_unflatten` is not in \('a',\)"),
                (0, (2, 3), ("x", "y"), ValueError, r"The product of mesh_sizes=\(2, 3\) is 6, but .* has size 4"),
            ]:
                with pytest.raises(kind, match=text):
                    mesh._unflatten(dim, sizes, names)

        on_mesh((4,), look)


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda m: init_device_mesh("cuda", (5,)), RuntimeError, "Mesh should not be bigger than default world size 4, but found 5 ranks!"),  # noqa: E501
        (lambda m: init_device_mesh("cuda:0", (2,)), RuntimeError, "Device type with index is not supported but got cuda:0"),  # noqa: E501
        (lambda m: init_device_mesh("cpu", (1, 2), mesh_dim_names=("a", "a")), RuntimeError, "Each mesh_dim_name must be unique"),  # noqa: E501
        (lambda m: init_device_mesh("cpu", (2,), mesh_dim_names=("a", "b")), RuntimeError, "mesh_shape and mesh_dim_names should have same length!"),  # noqa: E501
        (lambda m: init_device_mesh("cpu", (2,), backend_override={1: "gloo"}), RuntimeError, r"Found invalid keys in backend_override: got \[1\], expected integers in range \[0, 1\)"),  # noqa: E501
        (lambda m: init_device_mesh("cpu", (2,), mesh_dim_names=("a",), backend_override={0: "gloo", "a": "nccl"}), RuntimeError, "Found redundant dim index 0 and name a in backend_override"),  # noqa: E501
        (lambda m: DeviceMesh("cpu", [0, 0]), ValueError, "ranks list must not contain duplicate entries, got"),
        (lambda m: DeviceMesh("cpu", [0.5, 1]), TypeError, "ranks, which are integers, not float64"),
        (lambda m: DeviceMesh("cpu", [0, 1, 2, 7]), ValueError, "The new group's rank should be within the world_size"),
        (lambda m: DeviceMesh("cpu", [0, 1], backend_override=()), ValueError, "same length as the number of mesh dimensions, but got 0 and 1"),  # noqa: E501
        (lambda m: m.get_group(), RuntimeError, "Found the DeviceMesh have 2 dimensions"),
        (lambda m: m.get_local_rank(), RuntimeError, "Optional kwarg `mesh_dim` needs to be specified"),
        (lambda m: m.get_group("z"), KeyError, "Mesh dimension 'z' does not exist"),
        (lambda m: m["z"], KeyError, r"Invalid mesh_dim_names \('z',\) specified. Valid mesh_dim_names are \['a', 'b'\]"),  # noqa: E501
        (lambda m: m["b", "a"], KeyError, "Mesh dim indices should be in ascending order"),
        (lambda m: m["a"]["b"], KeyError, r"Valid mesh_dim_names are \['a'\]"),
        (lambda m: DeviceMesh("cpu", [0, 1])["a"], RuntimeError, "Cannot slice a DeviceMesh without mesh_dim_names!"),
        (lambda m: DeviceMesh("cpu", [0, 1]).get_group("a"), KeyError, "No `mesh_dim_names` found"),
        (lambda m: DeviceMesh("cpu", [0, 1])._flatten(), RuntimeError, "Cannot flatten a DeviceMesh without mesh_dim_names!"),  # noqa: E501
        (lambda m: DeviceMesh("cpu", [0, 1], _init_backend=False).get_group(), RuntimeError, "DeviceMesh process groups not initialized!"),  # noqa: E501
        (lambda m: m._flatten("b"), ValueError, "b already exists for submesh of the DeviceMesh"),
        (lambda m: (m._flatten("x"), m["a"]._flatten("x")), ValueError, "Flatten mesh with mesh_dim_name x has been created before"),  # noqa: E501
        (lambda m: (m._flatten("x"), m["a", "x"]), RuntimeError, r"Slicing overlapping dim_names \('a', 'x'\) is not allowed"),  # noqa: E501
        (lambda m: m._get_root_mesh_dim(), AssertionError, "The submesh can only be a 1D mesh"),
        (lambda m: DeviceMesh.from_group(dist.group.WORLD, "cpu", [1, 0]), ValueError, r"Invalid mesh \[1, 0\] for ProcessGroup with ranks \[0, 1, 2, 3\]"),  # noqa: E501
        (lambda m: DeviceMesh.from_group([], "cpu"), ValueError, "Expects at least one ProcessGroup to be passed"),
        (lambda m: DeviceMesh.from_group([dist.group.WORLD], "cpu"), ValueError, "Must pass mesh if passing multiple ProcessGroups"),  # noqa: E501
        (lambda m: DeviceMesh.from_group([dist.group.WORLD], "cpu", [0, 1]), ValueError, "Must pass mesh_dim_names if passing multiple ProcessGroups"),  # noqa: E501
        (lambda m: DeviceMesh.from_group([dist.group.WORLD], "cpu", [[0, 1]], mesh_dim_names=("a",)), ValueError, r"Expects mesh with ndim equal to number of ProcessGroups but got mesh \[\[0, 1\]\] and 1"),  # noqa: E501
    ],
)  # fmt: skip
def test_misuse(call: Callable[[DeviceMesh], Any], kind: type[Exception], text: str) -> None:
    def look(rank: int, mesh: DeviceMesh) -> None:
        with pytest.raises(kind, match=text):
            call(mesh)

    on_mesh((2, 2), look)


class TestLayouts:
    """The arithmetic of axes, on random ones."""

    def test_split_undoes_joined(self) -> None:
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        rng = random.Random(seed)
        for _ in range(300):
            shape = [rng.choice([1, 2, 3, 4, 6]) for _ in range(rng.randint(1, 4))]
            layout = Layout.of_shape(shape)
            chosen = sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape))))
            axes = [layout.axes[i] for i in chosen]
            axis = joined(axes)
            sizes = [size_of(a) for a in axes]
            assert size_of(axis) == math.prod(sizes)
            straight = Layout(tuple(axes)).offsets().reshape(-1).tolist()
            assert Layout((axis,)).offsets().tolist() == straight
            assert Layout(tuple(split(axis, sizes))).offsets().reshape(-1).tolist() == straight

    def test_parts_cover_all_once(self) -> None:
        for shape in SHAPES:
            layout, length = Layout.of_shape(shape), math.prod(shape)
            for n in range(len(shape) + 1):
                for axes in itertools.combinations(layout.axes, n):
                    parts = Layout(axes).parts(length)
                    assert sorted(int(p) for part in parts for p in part.flat) == list(range(length))

    def test_what_cannot_be_split(self) -> None:
        with pytest.raises(ValueError, match=r"an axis of 6 cannot be split into \[3, 2\]"):
            split(((2, 100), (3, 1)), [3, 2])
        assert Layout((((2, 1),), ((2, 1),))).overlaps()


@pytest.mark.parametrize("again", [copy.deepcopy, lambda mesh: pickle.loads(pickle.dumps(mesh))])
def test_copies_have_the_same_groups(open_world: OpenWorld, again: Callable[[DeviceMesh], DeviceMesh]) -> None:
    open_world(SIXTY_FOUR)

    def program(rank: int, mesh: DeviceMesh) -> None:
        flat = mesh["a", "b"]._flatten("ab")
        for original in (mesh, mesh["b"], flat):
            made = again(original)
            assert made == original and made.get_coordinate() == original.get_coordinate()
            assert made.get_all_groups() == original.get_all_groups()
        assert dist.get_process_group_ranks(again(mesh)["c"].get_group()) == along((2, 2, 2), rank, [2])

    on_mesh((2, 2, 2), program)


@pytest.mark.parametrize("shape", [(-1, 2), (-2, -2), (0, 4), (0,)])
def test_sizes_are_positive(open_world: OpenWorld, shape: tuple[int, ...]) -> None:
    open_world()
    with pytest.raises(RuntimeError, match="mesh_shape must be of sizes from 1 on"):
        init_device_mesh("cpu", shape)
