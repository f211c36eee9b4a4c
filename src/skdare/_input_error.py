"""The error that a user's mistake raises."""

from __future__ import annotations


class InputError(ValueError):
    """Something that was passed cannot be used.

    It reads "what; remedy". Only the command line knows which option stands for an argument, and
    puts its name in the argument's place.

    Parameters
    ----------
    what : str
        What was passed, and what is needed.
    remedy : str, optional
        What to do about it.
    argument : str, optional
        The argument that it is about, by its name in Python.

    Examples
    --------
    >>> from skdare._input_error import InputError
    >>> raise InputError("l2 is -1", "it must be 0 or more", argument="l2")
    Traceback (most recent call last):
    skdare._input_error.InputError: l2 is -1; it must be 0 or more
    """

    def __init__(self, what: str, remedy: str = "", *, argument: str | None = None) -> None:
        # One text, as every ValueError has: pickling calls the class with it, and then restores
        # the three parts.
        super().__init__(f"{what}; {remedy}" if remedy else what)
        self.what = what
        self.remedy = remedy
        self.argument = argument
