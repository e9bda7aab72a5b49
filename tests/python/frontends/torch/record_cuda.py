"""Records on a machine with a GPU what CUDA does there: casts of autocast, and texts of errors.

    python record_cuda.py recorded_cuda.json

The file next to this one has been made so; tests compare the simulated devices with it.
"""

import json
import sys

import torch
import torch.nn.functional as F  # noqa: N812 (so the expressions read)
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

KINDS = {"f16": torch.float16, "f32": torch.float32, "f64": torch.float64}


class Seen(Exception):
    pass


class First(TorchDispatchMode):
    """Ends a call with the dtypes of the operands that arrive below autocast."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.name in ("aten::_to_copy", "aten::detach", "aten::copy_", "aten::clone"):
            return func(*args, **(kwargs or {}))
        flat = [t for a in args for t in (a if isinstance(a, (list, tuple)) else [a])]
        seen = [str(t.dtype)[6:] for t in flat if isinstance(t, torch.Tensor)]
        kept = (kwargs or {}).get("dtype") or next((a for a in args if isinstance(a, torch.dtype)), None)
        raise Seen(f"{func.name()} {' '.join(seen)}" + (f" dtype={str(kept)[6:]}" if kept else ""))


def arguments(schema, kinds):
    """Something for each argument that must be given: tensors of these kinds in turn."""
    kinds, given, named = list(kinds), [], {}

    def tensor():
        return torch.ones(2, 2, device="cuda", dtype=KINDS[kinds.pop(0) if len(kinds) > 1 else kinds[0]])

    for a in schema.arguments:
        text = str(a.type)
        if a.default_value is not None or text.startswith("Optional"):
            continue
        v = tensor() if text == "Tensor" else [tensor(), tensor()] if text == "List[Tensor]" else None
        if v is None:
            v = [1] if text.startswith("List") else {"float": 1.0, "bool": False, "str": "mean"}.get(text, 1)
        if a.kwarg_only:
            named[a.name] = v
        else:
            given.append(v)
    return given, named


def casts():
    found = {}
    names = torch._C._dispatch_get_registrations_for_dispatch_key("AutocastCUDA")
    for name in sorted(n for n in names if n.startswith("aten::")):
        base, _, overload = name[6:].partition(".")
        op = getattr(getattr(torch.ops.aten, base), overload or "default")
        for kinds in (["f16"], ["f32"], ["f64"], ["f16", "f32"], ["f32", "f16"]):
            try:
                given, named = arguments(op._schema, kinds)
                with torch.autocast("cuda", torch.float16), First():
                    op(*given, **named)
                answer = "nothing"
            except Seen as seen:
                answer = str(seen)
            except Exception as error:
                answer = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            found.setdefault(name[6:], {})[" ".join(kinds)] = answer
    return found


MIXED = """a+b;b+a;a@b;torch.mm(b,a);a.add_(b);b.add_(a);torch.cat([a,b]);torch.where(a>0,a,b);torch.stack([a,b])
F.linear(a,b);F.linear(a,a,v);F.embedding(i,a);F.cross_entropy(a,j);F.layer_norm(a,(2,),v,v);a[i];a[i.cuda()];b[i.cuda()]
torch.addmm(b,a,a);torch.bmm(a[None],b[None]);a.copy_(b);a+b.sum();b+a.sum();a+a.sum().cpu();torch.mul(a,b,out=b)
torch._foreach_add([a],[b]);F.conv2d(a[None,None],b[None,None]);a==b;torch.equal(a,b);torch.maximum(a,b);a.index_add_(0,i,a)
F.mse_loss(a,b);torch.gather(a,0,i[None]);a.scatter_(0,i[None].cuda(),b);torch.dot(v,a[0]);a.numpy();F.nll_loss(a,j)
torch.cuda.set_device(99);torch.ones(1,device="cuda:99");torch.empty(1<<50,device="cuda");a.masked_fill(b>0,1.);a.to("cuda:77")
torch.cuda.Event().elapsed_time(torch.cuda.Event());torch.randn(2,device="cuda",generator=torch.Generator())
torch.randn(2,generator=torch.Generator("cuda"));F.scaled_dot_product_attention(a[None],b[None],a[None]);torch.outer(v,a[0])
torch.lerp(a,b,.5);torch.baddbmm(a[None],a[None],b[None]);a.index_copy_(0,i,a);a.lerp_(a,b);torch.matmul(b,a);a/b;a.pow(b)
b.index_put((i.cuda(),),v);b.index_put_((i,i.cuda()),v[0]);b.index_put((b[0].cuda()>0,),v);b.index_put((i,),a[0,0])
b.index_put((i,),a[0]);b.index_put((i.cuda(),),a[0]);a.index_put((i,),v[0]);a.index_put((i,),v);a.index_put((b>0,),a[0,0])
b.__setitem__(i.cuda(),2.);a.__setitem__(i,v[:1])
torch.isclose(a,b);F.batch_norm(a,v,v);F.group_norm(a,1,v,v);torch.einsum("ij,jk",a,b);a.type();str(a);repr(a.device)"""
MORE = """torch.Generator("cuda").get_state().numel();sorted(torch.cuda.memory_stats());str(torch.cuda.current_stream().device)
str(torch.Generator("cuda").device);torch.ones(1,pin_memory=True).is_pinned();repr(a.untyped_storage().device);a.get_device()
b.get_device();str(torch.accelerator.current_accelerator());repr(nn.Parameter(a));torch.cuda.is_initialized()
repr(torch.cuda.get_device_properties(0));torch.cuda.get_device_capability();type(a.storage()).__name__;repr(a.half())
torch.cuda.memory_allocated();a.is_pinned();repr(torch.cuda.default_stream());(a.to("cpu",copy=False) is a);repr(v.grad)"""  # noqa: E501


def errors():
    found = {}
    for text in (MIXED + "\n" + MORE).replace("\n", ";").split(";"):
        a, b = torch.ones(2, 2, device="cuda"), torch.ones(2, 2)
        v, i, j = torch.ones(2), torch.tensor([0, 1]), torch.tensor([0, 1])
        names = {"torch": torch, "F": F, "nn": nn, "a": a, "b": b, "v": v, "i": i, "j": j}
        try:
            found[text] = repr(eval(text, names))
        except Exception as error:
            found[text] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return found


INTEGERS = (torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool, torch.int16)
OF_INTEGERS = """a@a;torch.mm(a,a);torch.bmm(c,c);torch.mv(a,v);torch.dot(v,v);torch.vdot(v,v);torch.addmm(a,a,a);v@v
torch.baddbmm(c,c,c);torch.addmv(v,a,v);torch.addbmm(a,c,c);F.linear(a,a);F.linear(a,a,v);torch.einsum("ij,jk",a,a);a.mm(a.t())
torch.outer(v,v);torch.addr(a,v,v);torch.chain_matmul(a,a,a);torch.tensordot(a,a,1);torch.inner(a,a);torch.kron(a,a);a.cumsum(0)
F.conv1d(c,c);F.conv2d(c[None],c[None]);F.conv3d(c[None,None],c[None,None]);F.conv_transpose2d(c[None],c[None])
F.softmax(a,0);F.log_softmax(a,0);F.layer_norm(a,(2,));F.rms_norm(a,(2,));F.gelu(a);F.silu(a);F.relu(a);F.sigmoid(a);F.mish(a)
F.elu(a);F.leaky_relu(a);F.hardtanh(a);F.softplus(a);F.glu(a);F.logsigmoid(a);F.hardswish(a);a.tanh();a.exp();a.rsqrt()
torch.lerp(a,a,.5);torch.addcmul(a,a,a);torch.addcdiv(a,a,a);F.mse_loss(a,a);F.l1_loss(a,a);F.smooth_l1_loss(a,a);F.huber_loss(a,a)
F.avg_pool1d(c,2);F.avg_pool2d(c,2);F.max_pool1d(c,2);F.max_pool2d(c,2);F.adaptive_avg_pool2d(c,1);F.adaptive_max_pool2d(c,1)
F.batch_norm(a,v,v);F.group_norm(c,1);F.instance_norm(c);F.grid_sample(c[None],c[None])
F.binary_cross_entropy(a,a);F.cross_entropy(a,i);F.nll_loss(a,i);F.kl_div(a,a);F.dropout(a,.5);F.normalize(a);F.pad(a,(1,1))
F.scaled_dot_product_attention(c,c,c);torch.cdist(a,a);F.cosine_similarity(a,a);a.mean();a.std();a.norm();a.prod();a.median()
a//a;a%a;a/a;a.round();a.floor();a.remainder(a);a.fmod(a);a<<1;a.searchsorted(a);a.kthvalue(1);a.histc(2);a.sort();a.topk(1);a.logsumexp(0)
torch.linalg.inv(a);torch.linalg.det(a);torch.linalg.norm(a);torch.matrix_power(a,2);torch.trace(a);a.normal_();a.uniform_()
a.bernoulli_();a.exponential_();torch.multinomial(a,1);torch.bernoulli(a);a.index_add(0,i,a);a.scatter_add(0,a.long()*0,a)"""


def of_integers(device="cuda"):
    """Returns what operations make of integers: the dtype of the result, or the error."""
    found = {}
    for text in OF_INTEGERS.replace("\n", ";").split(";"):
        for dtype in INTEGERS:
            a, v = torch.ones(2, 2, device=device).to(dtype), torch.ones(2, device=device).to(dtype)
            names = {"torch": torch, "F": F, "a": a, "v": v, "c": a[None], "i": torch.tensor([0, 1], device=device)}
            try:
                result = eval(text, names)
                answer = str((result if isinstance(result, torch.Tensor) else result[0]).dtype)
            except Exception as error:
                answer = f"{type(error).__name__}: {str(error).splitlines()[0]}"
            found.setdefault(text, {})[str(dtype)[6:]] = answer
    return found


def alike(here, there):
    """Returns the dtypes of which operations say the same on two devices, where that is an error."""
    found = {
        text: [dtype for dtype, said in answers.items() if "Error: " in said and said == there[text][dtype]]
        for text, answers in here.items()
    }
    return {text: dtypes for text, dtypes in found.items() if dtypes}


if __name__ == "__main__":
    about = {"torch": torch.__version__, "cuda": torch.version.cuda, "device": torch.cuda.get_device_name()}
    found = {"about": about, "casts": casts(), "errors": errors(), "of integers": of_integers()}
    found["of integers, as on the host"] = alike(found["of integers"], of_integers("cpu"))
    with open(sys.argv[1], "w") as file:
        json.dump(found, file, indent=1)
