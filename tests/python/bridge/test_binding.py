"""Errors of the core, as Python gets them."""

import gc
import weakref

import pytest

from torchemu.bridge.binding import go


class Thing:
    """Something that a caller has."""


@pytest.mark.parametrize("number", [1 << 40, 1 << 80])
def test_an_error_that_is_caught_keeps_nothing_of_its_callers(number):
    """Not even until Python looks for what refers to itself: tensors would stay in memory that long."""

    def caught():
        thing = Thing()
        try:
            go.IsDone(number)
        except (RuntimeError, ValueError):
            return weakref.ref(thing)
        raise AssertionError("nothing was raised")

    gc.disable()
    try:
        assert caught()() is None
    finally:
        gc.enable()
