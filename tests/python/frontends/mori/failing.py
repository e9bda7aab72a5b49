"""Errors that programs for mori ask for."""


def fails(kind, text, call):
    """Asserts that a call raises an error of a kind with some text."""
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"no {kind.__name__}")
