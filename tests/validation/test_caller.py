"""A warning of the library points at the line of the user that called it, however deep it was raised."""

import warnings

import pytest

from echolearn import Reservoir
from echolearn.validation.caller import user_stacklevel


def test_outside_the_library_the_line_itself_is_named():
    assert user_stacklevel() == 1


def test_a_function_of_the_library_names_its_caller():
    space = {"__name__": "echolearn.somewhere", "warnings": warnings, "user_stacklevel": user_stacklevel}
    exec(
        "def inner():\n    warnings.warn('odd', stacklevel=user_stacklevel())\ndef outer():\n    inner()",
        space,
    )
    with pytest.warns(UserWarning, match="odd") as seen:
        space["outer"]()
    assert seen[0].filename == __file__


def test_a_warning_of_a_reservoir_names_this_file():
    with pytest.warns(UserWarning, match="no echo states") as seen:
        Reservoir.random(1, 5, spectral_radius=1.5, random_state=0)
    assert seen[0].filename == __file__
