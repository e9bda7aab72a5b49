"""Kernels that ranks issue, as tests look at them."""

from typing import Any


def noted(monkeypatch: Any) -> list[tuple[str, int, int, str]]:
    """Returns what fills with the name, bytes, elements and unit of each kernel that is issued from now on."""
    from torchemu.frontends.torch.device.launches import Launches

    issued: list[tuple[str, int, int, str]] = []
    add = Launches.add

    def note(self: Launches, *about: Any) -> None:
        if not self.is_silent:
            issued.append(about)
        add(self, *about)

    monkeypatch.setattr(Launches, "add", note)
    return issued
