"""Groups of nccl answer as NCCL did on two GPUs when it was recorded; see record_nccl.py."""

import inspect
import json
import pathlib

import newer
import pytest
import record_nccl
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

import torchemu

RECORDED = json.loads(pathlib.Path(__file__).with_name("recorded_nccl.json").read_text())["answers"]

pytestmark = [newer.names_of_before, pytest.mark.filterwarnings("ignore:.*will be deprecated:FutureWarning")]

LET_PASS = {
    "all_reduce PREMUL bfloat16": "NCCL's zeros are a mistake",
    "host: object": "objects cross in the host's memory",
}
"""Calls that do something else here, and why."""

OTHERWISE = {
    "all_gather into nothing": "the text says how many there must be",
    "reduce_scatter other dtype": "the text says which rank differs",
    "all_gather other dtype": "the text says what is expected",
    "coalesced dtypes": "the text is that of other collectives",
    "host: reduce_scatter_tensor": "the text is that of other collectives",
    "splits: none, 3": "rows that are no rank's are refused",
    "product of dtypes": "the text names the host's arguments",
    "isend to itself": "NCCL fails at looking for an address",
    "irecv to itself": "NCCL fails at looking for an address",
    "recv to itself": "NCCL fails at looking for an address",
}
"""Calls that are refused in other words, and why; one that NCCL lets pass."""


OF_PYTHON = {"monitored_barrier": "", "split_group": "<torch.distributed.ProcessGroup "}
"""Calls that torch.distributed's own Python refuses, and how the answer begins where newer versions do not."""


@pytest.fixture(scope="module")
def answers():
    found = {}

    @torchemu.distributed(world_size=2, torch="real")
    def program():
        dist.init_process_group("nccl")
        torch.cuda.set_device(dist.get_rank())
        mine = record_nccl.answers()
        if dist.get_rank() == 0:
            found.update(mine)

    program()
    return found


@pytest.mark.parametrize("name", [name for name in RECORDED if name not in OTHERWISE | LET_PASS])
def test_answers(answers, name):
    recorded = RECORDED[name]
    if name in ("all_gather_into_tensor of 7", "reduce_scatter_tensor of 7"):
        assert answers[name].startswith(recorded)  # with the numbers of elements
    elif name in OF_PYTHON and (source := inspect.getsource(c10d)).find(_words(recorded)) < 0:
        assert answers[name].startswith(OF_PYTHON[name] or recorded.partition(":")[0])
        assert OF_PYTHON[name] or _words(answers[name]) in source
    else:
        assert answers[name] == recorded


def _words(answer):
    """Returns the text of an error."""
    return answer.partition(": ")[2]


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_refused_in_other_words(answers, name):
    assert "Error: " in answers[name]
