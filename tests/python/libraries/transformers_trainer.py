"""Trains a small GPT-2 with transformers' Trainer, from a configuration, on data that need no download."""

import torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Sequences(Dataset):
    """Sequences in which each number follows from the one before."""

    def __len__(self):
        return 64

    def __getitem__(self, index):
        numbers = (torch.arange(16) * (index % 5 + 1) + index) % 97
        return {"input_ids": numbers, "labels": numbers}


def main():
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=97, n_positions=16, n_embd=32, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0
    )
    arguments = TrainingArguments(
        output_dir="out", per_device_train_batch_size=4, max_steps=6, learning_rate=1e-2, logging_steps=1,
        save_strategy="no", report_to="none", disable_tqdm=True, seed=3, use_cpu=not torch.cuda.is_available(),
    )  # fmt: skip
    trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=Sequences(), eval_dataset=Sequences())
    trainer.train()
    losses = [float(entry["loss"]) for entry in trainer.state.log_history if "loss" in entry]
    losses.append(float(trainer.evaluate()["eval_loss"]))
    if trainer.is_world_process_zero():
        print("losses", *losses)


main()
