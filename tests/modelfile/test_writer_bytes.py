"""What is written without the package safetensors is what that package reads."""

import numpy as np
import safetensors.numpy

from echolearn.modelfile.writer import to_bytes


def test_the_package_reads_the_same_arrays_and_writes_the_same_order():
    arrays = {
        "wide": np.arange(6.0).reshape(2, 3),
        "narrow": np.array([True, False, True]),
        "half": np.ones(3, np.float16),
        "a/ü": np.arange(4, dtype=np.int32),
        "empty": np.zeros((0, 5)),
        "number": np.array(7),
    }
    content = to_bytes(arrays, {"kind": 'text with é and "quotes"'})
    found = safetensors.numpy.load(content)
    assert {name: value.tolist() for name, value in found.items()} == {n: v.tolist() for n, v in arrays.items()}
    assert {name: value.dtype for name, value in found.items()} == {n: v.dtype for n, v in arrays.items()}
    theirs = safetensors.numpy.save(arrays, metadata={"kind": 'text with é and "quotes"'})
    assert len(content) == len(theirs)
    header = 8 + int.from_bytes(theirs[:8], "little")
    assert content[:8] == theirs[:8]
    assert content[header:] == theirs[header:]
