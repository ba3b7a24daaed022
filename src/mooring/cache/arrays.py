"""The array types of the columns, in one place."""

from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
FloatArray: TypeAlias = NDArray[np.float64]

A = TypeVar("A", IntArray, BoolArray)


def frozen(array: A) -> A:
    """The same array, which nobody can write to any more."""
    array.flags.writeable = False
    return array
