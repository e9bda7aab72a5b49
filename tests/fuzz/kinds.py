"""The kinds of steps, as the lines of a script."""

from __future__ import annotations

from dataclasses import dataclass

PACKED = ("whole", "offset")
DENSE = (*PACKED, "transposed")


@dataclass(frozen=True)
class Kind:
    """A kind of step.

    In the lines {i} is the step's number, {data} and {blank} are its tensors (see scripts.py), {n} is the number of
    members, {root} the rank with a part of its own and {next} the one after it; {me} is the rank's place in the group,
    and {key} one of the step's own in the store.

    Attributes:
        make: the lines before the call.
        call: the call; what {more} stands for has the group, and whether it is asynchronous.
        keep: what the step gets: an expression.
        work: whether it can be asynchronous.
        reduces: whether it has an op.
        layouts: of its tensors, those that gloo of PyTorch 2.11 handles: it writes past the elements of views with gaps
            but in gathers, and reduce leaves anything around them where the rank is not the root.
        complexes: whether gloo has it for complex numbers.
        floats: whether it is for floats only.
        host: whether only gloo has it.
        pair: whether only two members take part; then call is the sender's, and other the receiver's.
        objects: whether it has no tensors, and so neither a dtype nor a shape that could be a wrong one.
    """

    make: tuple[str, ...] = ()
    call: str = ""
    keep: str = "None"
    work: bool = True
    reduces: bool = False
    layouts: tuple[str, ...] = PACKED
    complexes: bool = True
    floats: bool = False
    host: bool = False
    pair: bool = False
    other: str = ""
    objects: bool = False


_IN = "x{i} = {data}"
_OUT = "o{i} = {blank}"
_LIST = "o{i} = [{blank} for _ in range({n})]"
_ON_ROOT = " if rank == {root} else None"

KINDS = {
    "all_reduce": Kind(
        (_IN,), "dist.all_reduce(x{i}, op=dist.ReduceOp.{op}, {more})", "x{i}", reduces=True, layouts=DENSE
    ),
    "premul_sum": Kind((_IN,), "dist.all_reduce(x{i}, op=premul(x{i}, 2.0), {more})", "x{i}", floats=True),
    "coalesced_all_reduce": Kind(
        (_IN, "y{i} = {data_more}"),
        "with dist._coalescing_manager({group}): dist.all_reduce(x{i}, op=dist.ReduceOp.{op}, group={group}); "
        "dist.all_reduce(y{i}, op=dist.ReduceOp.{op}, group={group})",
        "[x{i}, y{i}]",
        work=False,
        reduces=True,
        layouts=("whole",),
        complexes=False,
    ),
    "coalesced_all_gather_into_tensor": Kind(
        (_IN, "y{i} = {data_more}", "o{i}, p{i} = {blanks}, {blanks}"),
        "with dist._coalescing_manager({group}): dist.all_gather_into_tensor(o{i}, x{i}, group={group}); "
        "dist.all_gather_into_tensor(p{i}, y{i}, group={group})",
        "[o{i}, p{i}]",
        work=False,
        layouts=("whole",),
    ),
    "broadcast": Kind((_IN,), "dist.broadcast(x{i}, {root}, {more})", "x{i}", layouts=DENSE),
    "reduce": Kind(
        (_IN,),
        "dist.reduce(x{i}, {root}, op=dist.ReduceOp.{op}, {more})",
        "x{i}" + _ON_ROOT,
        reduces=True,
        layouts=("whole", "transposed"),
    ),
    "all_gather": Kind((_IN, _LIST), "dist.all_gather(o{i}, x{i}, {more})", "o{i}", layouts=(*DENSE, "stepped")),
    "all_gather_into_tensor": Kind((_IN, "o{i} = {blanks}"), "dist.all_gather_into_tensor(o{i}, x{i}, {more})", "o{i}"),
    "gather": Kind(
        (_IN, _LIST + _ON_ROOT),
        "dist.gather(x{i}, o{i}, {root}, {more})",
        "o{i}",
        layouts=(*DENSE, "stepped"),
        complexes=False,
    ),
    "scatter": Kind(
        ("x{i} = [{data_k} for k in range({n})]" + _ON_ROOT, _OUT),
        "dist.scatter(o{i}, x{i}, {root}, {more})",
        "o{i}",
        layouts=DENSE,
    ),
    "reduce_scatter": Kind(
        ("x{i} = [{data_k} for k in range({n})]", _OUT),
        "dist.reduce_scatter(o{i}, x{i}, op=dist.ReduceOp.{op}, {more})",
        "o{i}",
        reduces=True,
        layouts=DENSE,
    ),
    "reduce_scatter_tensor": Kind(
        ("x{i} = {datas}", _OUT),
        "dist.reduce_scatter_tensor(o{i}, x{i}, op=dist.ReduceOp.{op}, {more})",
        "o{i}",
        reduces=True,
    ),
    "all_to_all_single": Kind(
        ("x{i} = {datas}", "o{i} = {blanks}"), "dist.all_to_all_single(o{i}, x{i}, {more})", "o{i}"
    ),
    "all_to_all_splits": Kind(
        (
            "give{i} = [({salt} + 3 * {me} + 5 * k) % 4 for k in range({n})]",
            "take{i} = [({salt} + 3 * k + 5 * {me}) % 4 for k in range({n})]",
            'x{i}, o{i} = data("{dtype}", (sum(give{i}), 2), "whole", {salt}), '
            'blank("{dtype}", (sum(take{i}), 2), "whole")',
        ),
        "dist.all_to_all_single(o{i}, x{i}, take{i}, give{i}, {more})",
        "o{i}",
    ),
    "barrier": Kind((), "dist.barrier({more})", objects=True),
    "monitored_barrier": Kind((), "dist.monitored_barrier(group={group})", work=False, host=True, objects=True),
    "send": Kind(
        (_IN,),
        "dist.send(x{i}, {next}, group={group})",
        "x{i}",
        pair=True,
        other="dist.recv(x{i}, {root}, group={group})",
    ),
    "any_source": Kind(
        (_IN,),
        "dist.send(x{i}, {next}, group={group}, tag={tag})",
        "x{i}",
        work=False,
        pair=True,
        host=True,
        other="dist.recv(x{i}, group={group}, tag={tag})",
    ),
    "ring": Kind(
        (_IN, _OUT),
        "Works(dist.batch_isend_irecv([dist.P2POp(dist.isend, x{i}, {after}, {group}), "
        "dist.P2POp(dist.irecv, o{i}, {before}, {group})]))",
        "o{i}",
    ),
    "send_object_list": Kind(
        ("x{i} = [thing({salt}), thing({salt} + 1)]",),
        "dist.send_object_list(x{i}, {next}, group={group})",
        "x{i}",
        work=False,
        pair=True,
        objects=True,
        other="dist.recv_object_list(x{i}, {root}, group={group})",
    ),
    "store_set": Kind(
        ('store.set(f"{key} {{rank}}", repr(thing({salt})))',),
        'o{i} = store.get(f"{key} {{{after}}}").decode()',
        "o{i}",
        work=False,
        objects=True,
    ),
    "store_add": Kind(
        ('store.add("{key}", {salt} + {me})',),
        "dist.barrier(group={group})",
        'store.add("{key}", 0)',
        work=False,
        objects=True,
    ),
    "store_compare_set": Kind(
        (),
        'store.compare_set("{key}", "", "from {root}") if rank == {root} else store.wait(["{key}"])',
        'store.get("{key}").decode()',
        work=False,
        objects=True,
    ),
    "all_gather_object": Kind(
        ("x{i}, o{i} = thing({salt}), [None] * {n}",),
        "dist.all_gather_object(o{i}, x{i}, group={group})",
        "o{i}",
        work=False,
        objects=True,
    ),
    "broadcast_object_list": Kind(
        ("x{i} = [thing({salt}), thing({salt} + 1)]",),
        "dist.broadcast_object_list(x{i}, {root}, group={group})",
        "x{i}",
        work=False,
        objects=True,
    ),
    "gather_object": Kind(
        ("x{i}, o{i} = thing({salt}), [None] * {n}" + _ON_ROOT,),
        "dist.gather_object(x{i}, o{i}, {root}, group={group})",
        "o{i}",
        work=False,
        objects=True,
    ),
    "scatter_object_list": Kind(
        ("x{i}, o{i} = [thing({salt} + k) for k in range({n})]" + _ON_ROOT + ", [None]",),
        "dist.scatter_object_list(o{i}, x{i}, {root}, group={group})",
        "o{i}",
        work=False,
        objects=True,
    ),
}
