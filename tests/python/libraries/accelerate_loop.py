"""Trains with accelerate: prepared loaders, gradients accumulated, clipped; losses and labels gathered."""

import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, gather_object, reduce, set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    set_seed(1)
    accelerator = Accelerator(gradient_accumulation_steps=2, cpu=not torch.cuda.is_available())
    features = torch.linspace(-1, 1, 60 * 8).reshape(60, 8).sin()
    loader = DataLoader(TensorDataset(features, features.sum(1, keepdim=True)), batch_size=5)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    losses = []
    for _ in range(3):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(x), y)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            losses.append(reduce(loss.detach(), "mean").item())
    model.eval()
    with torch.no_grad():
        seen = torch.cat([accelerator.gather_for_metrics(model(x)) for x, _ in loader])
    assert len(seen) == 60, len(seen)  # what the last batch was filled up with is not among them
    names = gather_object([f"rank {accelerator.process_index}"])
    said = broadcast_object_list([names if accelerator.is_main_process else None])
    assert said[0] == [f"rank {i}" for i in range(accelerator.num_processes)]
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        print("losses", *losses, seen.double().sum().item())
    accelerator.end_training()


main()
