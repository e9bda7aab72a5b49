# torchrun --nproc-per-node 2 networks.py
"""Networks of several kinds under DistributedDataParallel: residual images, a generator and its critic, sequences."""

import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def say(*words):
    if dist.get_rank() == 0:
        print(*words)


def mean(loss):
    total = loss.detach().clone()
    dist.all_reduce(total)
    return f"{total.item() / dist.get_world_size():.3f}"


class Residual(nn.Module):
    def __init__(self, channels, stride=1):
        super().__init__()
        self.first = nn.Conv2d(channels, 2 * channels, 3, stride, padding=1, bias=False)
        self.second = nn.Conv2d(2 * channels, 2 * channels, 3, padding="same", bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(2 * channels), nn.GroupNorm(2, 2 * channels)])
        self.short = nn.Sequential(nn.AvgPool2d(stride), nn.Conv2d(channels, 2 * channels, 1))

    def forward(self, x):
        found = F.relu(self.norms[0](self.first(x)), inplace=True)
        return F.leaky_relu(self.norms[1](self.second(found)) + self.short(x), 0.1)


def images():
    torch.manual_seed(1)
    net = nn.Sequential(
        nn.Conv2d(2, 4, 5, 2, 2), nn.MaxPool2d(3, 2, 1), Residual(4), nn.Dropout2d(0.1), Residual(8, stride=2),
        nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(16, 4),
    )  # fmt: skip
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    x = torch.randn(24, 2, 16, 16, generator=torch.Generator().manual_seed(5))
    data = TensorDataset(x, torch.arange(24) % 4)
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    model = DDP(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.002, momentum=0.9)
    schedule = OneCycleLR(optimizer, max_lr=0.01, epochs=2, steps_per_epoch=len(loader))
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for batch, target in loader:
            loss = F.cross_entropy(model(batch), target, label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 2.0)
            optimizer.step()
            schedule.step()
        say("images", epoch, mean(loss), f"{schedule.get_last_lr()[0]:.5f}")
    model.eval()
    say([int(n) for n in model(x[:6]).argmax(1)], int(net[2].norms[0].num_batches_tracked))


def generator_and_critic():
    torch.manual_seed(2)
    generator = DDP(nn.Sequential(
        nn.ConvTranspose2d(6, 8, 4, bias=False), nn.BatchNorm2d(8), nn.ReLU(True),
        nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1), nn.Tanh(),
    ), broadcast_buffers=False)  # fmt: skip
    critic = DDP(nn.Sequential(
        nn.Conv2d(1, 4, 4, 2, 1), nn.ELU(), nn.Conv2d(4, 1, 4), nn.Flatten(0)
    ))  # fmt: skip
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01, betas=(0.5, 0.999)) for m in (generator, critic)]
    source = torch.Generator().manual_seed(dist.get_rank())
    ones, zeros = torch.ones(5), torch.zeros(5)
    for step in range(3):
        real = torch.randn(5, 1, 8, 8, generator=source)
        fake = generator(torch.randn(5, 6, 1, 1, generator=source))
        optimizers[1].zero_grad()
        loss = F.binary_cross_entropy_with_logits(critic(real), ones)
        loss.backward()
        other = F.binary_cross_entropy(critic(fake.detach()).sigmoid(), zeros)
        other.backward()
        optimizers[1].step()
        optimizers[0].zero_grad()
        fooled = F.binary_cross_entropy_with_logits(critic(fake), ones)
        fooled.backward()
        optimizers[0].step()
        say("critic", step, mean(loss), mean(other), mean(fooled))


class Reader(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.words = nn.Embedding(9, 6)
        self.memory = getattr(nn, kind)(6, 8, num_layers=2, dropout=0.2, batch_first=True, bidirectional=True)
        self.last = nn.Linear(16, 9)

    def forward(self, x):
        return self.last(self.memory(self.words(x))[0])


def sequences(kind):
    torch.manual_seed(4)
    model = DDP(Reader(kind))
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    schedule = ReduceLROnPlateau(optimizer, factor=0.5, patience=0, threshold=0.05)
    numbers = torch.arange(48).reshape(4, 12) * (3 + dist.get_rank()) % 9
    for step in range(4):
        loss = F.cross_entropy(model(numbers[:, :-1]).transpose(1, 2), numbers[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step(float(mean(loss)))
        say(kind, step, mean(loss), optimizer.param_groups[0]["lr"])


def main():
    dist.init_process_group("gloo")
    images()
    generator_and_critic()
    for kind in ("LSTM", "GRU"):
        sequences(kind)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
