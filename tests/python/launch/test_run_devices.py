"""Where a script's tensors are, by its own account: what PyTorch prints there, whatever simulates them."""

from __future__ import annotations

from pathlib import Path

from launch import launch, lines, written


def one(folder: Path, text: str, *flags: str) -> list[str]:
    """Returns what a script prints on one rank."""
    return lines(launch("--nproc-per-node", "1", *flags, written(folder, text)))


def test_a_tensor_without_a_device_is_the_hosts(tmp_path: Path) -> None:
    text = """
        import torch
        x = torch.ones(2)
        print("0", x, x.device, x.is_cuda, x.is_cpu, x.get_device(), x.type())
        print("1", x.device == torch.device("cpu"), x.device == torch.zeros(1, device="cpu").device, x.cpu() is x)
        print("2", torch.zeros_like(x).device, (x + 1).device, x.new_ones(1).device, torch.get_default_device())
    """
    assert one(tmp_path, text) == [
        "0 tensor([1., 1.]) cpu False True -1 torch.FloatTensor",
        "1 True True True",
        "2 cpu cpu cpu cpu",
    ]


def test_a_tensor_on_a_gpu_is_called_what_the_script_calls_it(tmp_path: Path) -> None:
    text = """
        import torch
        y = torch.ones(2).cuda()
        print("0", y, y.device, y.is_cuda, y.is_cpu, y.get_device(), y.type())
        print("1", *(torch.ones(1, device=d).device for d in ("cuda", "cuda:0", 0, torch.device("cuda"), "ahbm")))
        print("2", y.device.type, torch.device(0), y.device == torch.device("cuda", 0), (y * 2).device)
        print("3", y.cpu(), y.to("cpu").device, torch.ones(1).to(y.device).device, torch.cuda.current_stream().device)
    """
    assert one(tmp_path, text) == [
        "0 tensor([1., 1.], device='cuda:0') cuda:0 True False 0 torch.cuda.FloatTensor",
        "1 cuda:0 cuda:0 cuda:0 cuda:0 ahbm:0",
        "2 cuda cuda:0 True cuda:0",
        "3 tensor([1., 1.]) cpu cuda:0 cuda:0",
    ]


def test_moving_to_a_gpu_makes_a_copy(tmp_path: Path) -> None:
    text = """
        import torch
        x = torch.ones(2)
        y = x.cuda()
        y += 1
        x -= 1
        print(x.tolist(), y.tolist(), y.cuda() is y, x.cpu() is x)
    """
    assert one(tmp_path, text) == ["[0.0, 0.0] [2.0, 2.0] True True"]


def test_what_a_script_calculates_without_a_device_takes_time(tmp_path: Path) -> None:
    text = """
        import time, torch
        x = torch.ones(1 << 20)
        x.sum().item()
        start = time.perf_counter()
        x.neg()
        x.neg().sum().item()
        print(time.perf_counter() > start)
    """
    assert one(tmp_path, text, "--virtual-clock") == ["True"]


def test_every_backend_takes_them(tmp_path: Path) -> None:
    text = """
        import torch, torch.distributed as dist
        for backend in "gloo", "nccl", None:
            dist.init_process_group(backend)
            for x in torch.ones(2), torch.ones(2).cuda():
                dist.all_reduce(x)
                print(backend, x)
            dist.destroy_process_group()
    """
    outcome = launch("--nproc-per-node", "2", written(tmp_path, text))
    answers = [f"{b} tensor([2., 2.]{d})" for b in ("gloo", "nccl", "None") for d in ("", ", device='cuda:{0}'")]
    assert lines(outcome) == sorted(a.format(rank) for a in answers for rank in (0, 1))


def test_a_tensor_keeps_its_place_in_files(tmp_path: Path) -> None:
    text = f"""
        import torch
        torch.save([torch.ones(1), torch.ones(1).cuda()], "{tmp_path}/file")
        print(*(t.device for t in torch.load("{tmp_path}/file")))
    """
    assert one(tmp_path, text) == ["cpu cuda:0"]
