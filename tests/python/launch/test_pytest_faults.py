"""@torchemu.distributed(faults=…), and World.add_faults."""

from __future__ import annotations

import pytest
from test_pytest_plugin import Run, run

import torchemu

__all__ = ["run"]  # the fixture

pytest_plugins = ["pytester"]


def test_faults(run: Run, pytester: pytest.Pytester) -> None:
    """Survivors see what they would see on a cluster, and the killed rank is nobody's failure."""
    pytester.makefile(
        ".yaml", slow="faults:\n  - {slow_rank: 1, factor: 1000}\n", wrong="faults:\n  - {kill: 9, at: 1}\n"
    )
    run(
        """
        import time
        from datetime import timedelta

        @torchemu.distributed(world_size=3, virtual_clock=True, faults=[{"kill": 2, "at": 3e6}])
        def test_killed():
            dist.init_process_group("gloo", timeout=timedelta(seconds=1))
            for step in range(10):
                time.sleep(0.001)
                t = torchemu.ones(1)
                try:
                    dist.all_reduce(t)
                    t.item()
                except dist.DistBackendError as error:
                    assert "rank 2 was killed at 3ms" in str(error)
                    return
            assert False, "nobody was missed"

        @torchemu.distributed(world_size=2, virtual_clock=True, faults="slow.yaml")
        def test_slow():
            begin = time.perf_counter()
            torchemu.ones(1000, 1000).exp().sum().item()
            took = [None] * 2
            dist.all_gather_object(took, time.perf_counter() - begin)
            assert took[1] > 10 * took[0]

        @torchemu.distributed(world_size=2, faults="wrong.yaml")
        def test_wrong():
            pass

        @torchemu.distributed(world_size=2, faults=[{"kill": 0}])
        def test_entry():
            pass
        """,
        passed=2,
        failed=2,
    ).stdout.fnmatch_lines(["E *ValueError: wrong.yaml:2*kill*", "E *ValueError: *at*"])


def test_faults_of_a_world() -> None:
    with torchemu.open_world() as world:
        with pytest.raises(ValueError, match=r"9.*\n?.*factor|factor.*\n?.*9"):
            world.add_faults([{"kill": 9, "at": 1}, {"slow_rank": 1}])
        with pytest.raises(OSError, match=r"none\.yaml"):
            world.add_faults("none.yaml")
        world.add_faults([])
        world.add_faults([{"slow_rank": 1, "factor": 2, "from": 1e6}, {"drop_link": [0, 1]}])
