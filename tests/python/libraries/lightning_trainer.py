"""Trains with Lightning's Trainer, DDP, a metric of torchmetrics and values that all ranks log together."""

import os

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torchmetrics.classification import MulticlassAccuracy


class Classifier(lightning.LightningModule):
    """Three classes of points."""

    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 3))
        self.accuracy = MulticlassAccuracy(3)

    def training_step(self, batch, index):
        loss = nn.functional.cross_entropy(self.model(batch[0]), batch[1])
        self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)
        return loss

    def validation_step(self, batch, index):
        self.accuracy(self.model(batch[0]), batch[1])
        self.log("accuracy", self.accuracy, on_epoch=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Losses(lightning.Callback):
    """Keeps what each epoch logs."""

    def __init__(self):
        self.seen = []

    def on_train_epoch_end(self, trainer, module):
        self.seen.append(trainer.callback_metrics["loss"].item())


def main():
    lightning.seed_everything(5, verbose=False)
    points = torch.linspace(-2, 2, 96 * 4).reshape(96, 4).cos()
    data = TensorDataset(points, points.sum(1).abs().long() % 3)
    losses = Losses()
    trainer = lightning.Trainer(
        max_epochs=3, devices=int(os.environ["WORLD_SIZE"]), strategy="ddp", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, callbacks=[losses], num_sanity_val_steps=0,
    )  # fmt: skip
    trainer.fit(Classifier(), DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8))
    if trainer.is_global_zero:
        print("losses", *losses.seen, trainer.callback_metrics["accuracy"].item())


main()
