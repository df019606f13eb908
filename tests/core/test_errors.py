"""Every error of the package has one base and says what to do."""

import pickle

import pytest

from sameworld.core import errors
from sameworld.core.arrays import finite_array
from sameworld.core.errors import MissingExtraError, SameworldError, closest, listed

KINDS = [
    value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, Exception) and name.endswith("Error")
]


def test_there_is_one_base():
    assert len(KINDS) >= 10
    assert all(issubclass(kind, SameworldError) for kind in KINDS)
    assert not issubclass(SameworldError, ValueError)
    assert issubclass(errors.SameworldWarning, Warning)


def test_a_missing_extra_gives_the_line_to_type():
    assert "pip install 'sameworld[bench]'" in str(MissingExtraError("cma", "bench"))


@pytest.mark.parametrize("kind", [k for k in KINDS if k is not MissingExtraError])
def test_errors_cross_process_borders(kind):
    assert str(pickle.loads(pickle.dumps(kind("what to do")))) == "what to do"


def test_lists_are_cut_and_empty_ones_say_so():
    assert listed([]) == "(none)"
    assert listed(["a", "b"]) == "'a', 'b'"
    assert listed(str(i) for i in range(15)).endswith("'11' and 3 more")


def test_only_near_names_are_suggested():
    assert closest("masss", ["mass", "friction"]) == " Did you mean 'mass'?"
    assert closest("colour", ["mass", "friction"]) == ""


def test_checked_arrays_name_the_first_bad_place():
    with pytest.raises(errors.SceneError, match=r"Pose holds 2 NaN .* index \(0, 1\)"):
        finite_array([[1, float("nan")], [float("inf"), 1]], "Pose", error=errors.SceneError)
    assert not finite_array([1], "Pose", error=errors.SceneError).flags.writeable
