"""Operations on tiles: LANES sequences in parallel, in the four operations that numba does not make fast by itself.

A tile has LANES numbers (lanes, one for each sequence) for each unit, and is kept as one row of N LANES numbers. If
these operations were loops, the lanes of two units would be checked for overlap at every term, and single numbers would
be moved between a tile and the frames (K, N). So they are written in LLVM's vectors of LANES numbers, which LLVM maps
to the vectors of the processor.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from echolearn._typing import Array
from echolearn.sequences.batching import LANES
from echolearn.states._activations import INNER

Value = Any  # a value, a type or a builder of LLVM or numba, which have no types

CHAINS = 4  # partial sums of a row, so that an addition need not wait for the previous one
STEPS = 4  # tiles whose outer products are summed at once

_INT = ir.IntType(64)
_INT32 = ir.IntType(32)
_FUSE = ("contract",)  # a product and a sum may be one instruction


@njit(nogil=True, error_model="numpy", **INNER)
def add_product(indptr: Array, indices: Array, data: Array, h: Array, z: Array) -> None:
    """Add A h to z for a CSR matrix A and tiles h, z."""
    for i in range(z.shape[0] // LANES):
        _add_row(indices, data, indptr[i], indptr[i + 1], h, z, i)


@njit(nogil=True, error_model="numpy", **INNER)
def add_outer(indptr: Array, indices: Array, Z: Array, H: Array, out: Array) -> None:
    """Add Σ_s Z_s H_s' to out at the places of a CSR pattern; Z, H (STEPS, N LANES): the tiles of some steps."""
    N = Z.shape[1] // LANES
    for i in range(N):
        _add_dots(indices, indptr[i], indptr[i + 1], Z, H, i, N, out)


@njit(nogil=True, error_model="numpy", **INNER)
def load(M: Array, r: int, stride: int, live: int, tile: Array) -> None:
    """Set lane b of a tile to M[r + b stride] for the live lanes, and to zero for those that have ended."""
    N = M.shape[1]
    whole = N // LANES * LANES
    for i in range(0, whole, LANES):
        _load_block(M, r, stride, live, tile, i)
    for i in range(whole, N):
        for b in range(LANES):
            tile[i * LANES + b] = M[r + b * stride, i] if b < live else 0


@njit(nogil=True, error_model="numpy", **INNER)
def store(tile: Array, M: Array, r: int, stride: int, live: int) -> None:
    """Set M[r + b stride] to lane b of a tile for the live lanes."""
    N = M.shape[1]
    whole = N // LANES * LANES
    for i in range(0, whole, LANES):
        _store_block(tile, i, M, r, stride, live)
    for i in range(whole, N):
        for b in range(live):
            M[r + b * stride, i] = tile[i * LANES + b]


@intrinsic
def _add_row(
    context: Value, indices: Value, data: Value, start: Value, stop: Value, h: Value, z: Value, i: Value
) -> Value:
    """Add Σ_p data[p] h[indices[p]] over start <= p < stop to z[i]; the sums stay in registers."""

    def generate(context: Value, builder: Value, signature: Value, arguments: Value) -> Value:
        indices, data, start, stop, h, z, i = _opened(context, builder, signature, arguments)
        vector = ir.VectorType(data.type.pointee, LANES)
        sums = [cgutils.alloca_once(builder, vector) for _ in range(CHAINS)]
        for s in sums:
            builder.store(_zeros(vector), s)

        def add_term(p: Value, s: Value) -> None:
            j = builder.zext(builder.load(builder.gep(indices, [p])), _INT)
            w = _spread(builder, builder.load(builder.gep(data, [p])))
            term = builder.fmul(w, _get(builder, h, _times(builder, j, LANES)), flags=_FUSE)
            builder.store(builder.fadd(builder.load(s), term, flags=_FUSE), s)

        rest = builder.srem(builder.sub(stop, start), _INT(CHAINS))
        whole = builder.sub(stop, rest)
        with cgutils.for_range_slice(builder, start, whole, _INT(CHAINS), intp=_INT) as (p, _):
            for c, s in enumerate(sums):
                add_term(builder.add(p, _INT(c)), s)
        with cgutils.for_range_slice(builder, whole, stop, _INT(1), intp=_INT) as (p, _):
            add_term(p, sums[0])
        place = _times(builder, i, LANES)
        total = _get(builder, z, place)
        for s in sums:
            total = builder.fadd(total, builder.load(s), flags=_FUSE)
        _put(builder, total, z, place)
        return context.get_dummy_value()

    return types.void(indices, data, types.int64, types.int64, h, z, types.int64), generate


@intrinsic
def _add_dots(
    context: Value, indices: Value, start: Value, stop: Value, Z: Value, H: Value, i: Value, N: Value, out: Value
) -> Value:
    """Add Σ_s <Z[s, i], H[s, indices[p]]> to out[p] for start <= p < stop."""

    def generate(context: Value, builder: Value, signature: Value, arguments: Value) -> Value:
        indices, start, stop, Z, H, i, N, out = _opened(context, builder, signature, arguments)

        def row(tiles: Value, s: int, i: Value) -> Value:
            return _get(builder, tiles, _times(builder, builder.add(builder.mul(_INT(s), N), i), LANES))

        mine = [row(Z, s, i) for s in range(STEPS)]
        with cgutils.for_range_slice(builder, start, stop, _INT(1), intp=_INT) as (p, _):
            j = builder.zext(builder.load(builder.gep(indices, [p])), _INT)
            total = builder.fmul(mine[0], row(H, 0, j), flags=_FUSE)
            for s in range(1, STEPS):
                total = builder.fadd(total, builder.fmul(mine[s], row(H, s, j), flags=_FUSE), flags=_FUSE)
            place = builder.gep(out, [p])
            dot = _summed(builder, total)
            if dot.type != out.type.pointee:
                dot = builder.fpext(dot, out.type.pointee)
            builder.store(builder.fadd(builder.load(place), dot), place)
        return context.get_dummy_value()

    return types.void(indices, types.int64, types.int64, Z, H, types.int64, types.int64, out), generate


@intrinsic
def _load_block(context: Value, M: Value, r: Value, stride: Value, live: Value, tile: Value, i: Value) -> Value:
    """Set lane b of unit i + k to M[r + b stride, i + k] for k < LANES."""

    def generate(context: Value, builder: Value, signature: Value, arguments: Value) -> Value:
        width = _width(context, builder, signature.args[0], arguments[0])
        M, r, stride, live, tile, i = _opened(context, builder, signature, arguments)
        rows = []
        for b in range(LANES):
            lives = builder.icmp_signed("<", _INT(b), live)
            lane = builder.select(lives, _INT(b), _INT(0))  # the row of an ended lane may be outside of M
            row = builder.add(r, builder.mul(lane, stride))
            x = _get(builder, M, builder.add(builder.mul(row, width), i))
            rows.append(builder.select(lives, x, _zeros(x.type)))
        for k, x in enumerate(_transposed(builder, rows)):
            _put(builder, x, tile, _times(builder, builder.add(i, _INT(k)), LANES))
        return context.get_dummy_value()

    return types.void(M, types.int64, types.int64, types.int64, tile, types.int64), generate


@intrinsic
def _store_block(context: Value, tile: Value, i: Value, M: Value, r: Value, stride: Value, live: Value) -> Value:
    """Set M[r + b stride, i + k] to lane b of unit i + k for k < LANES."""

    def generate(context: Value, builder: Value, signature: Value, arguments: Value) -> Value:
        width = _width(context, builder, signature.args[2], arguments[2])
        tile, i, M, r, stride, live = _opened(context, builder, signature, arguments)
        rows = [_get(builder, tile, _times(builder, builder.add(i, _INT(k)), LANES)) for k in range(LANES)]
        for b, x in enumerate(_transposed(builder, rows)):
            with builder.if_then(builder.icmp_signed("<", _INT(b), live), likely=True):
                row = builder.add(r, builder.mul(_INT(b), stride))
                _put(builder, x, M, builder.add(builder.mul(row, width), i))
        return context.get_dummy_value()

    return types.void(tile, types.int64, M, types.int64, types.int64, types.int64), generate


def _opened(context: Value, builder: Value, signature: Value, arguments: Value) -> list[Value]:
    """Return arrays (in C order) as the addresses of their first numbers, and integers as they are."""
    return [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _width(context: Value, builder: Value, kind: Value, value: Value) -> Value:
    """Return the number of columns of an array."""
    return cgutils.unpack_tuple(builder, context.make_array(kind)(context, builder, value).shape)[1]


def _times(builder: Value, x: Value, factor: int) -> Value:
    return builder.mul(x, _INT(factor))


def _zeros(vector: Value) -> Value:
    return ir.Constant(vector, [0.0] * LANES)


def _address(builder: Value, data: Value, element: Value) -> Value:
    """Return the address of the vector that begins at an element."""
    vector = ir.VectorType(data.type.pointee, LANES)
    return builder.bitcast(builder.gep(data, [element]), vector.as_pointer())


def _get(builder: Value, data: Value, element: Value) -> Value:
    """Load the vector that begins at an element; arrays are aligned to their numbers, not to vectors."""
    return builder.load(_address(builder, data, element), align=4)


def _put(builder: Value, x: Value, data: Value, element: Value) -> None:
    """Store a vector so that it begins at an element."""
    builder.store(x, _address(builder, data, element), align=4)


def _spread(builder: Value, x: Value) -> Value:
    """Return the vector (x, x, ...)."""
    undefined = ir.Constant(ir.VectorType(x.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, x, _INT32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT32, LANES), [0] * LANES))


def _transposed(builder: Value, rows: list[Value]) -> list[Value]:
    """Return the transpose of a matrix of LANES rows.

    In each of log2(LANES) rounds, rows k and k + LANES/2 are interleaved and become rows 2k and 2k + 1.
    """
    half = LANES // 2
    orders = [
        ir.Constant(ir.VectorType(_INT32, LANES), [start + k // 2 + LANES * (k % 2) for k in range(LANES)])
        for start in (0, half)
    ]
    for _ in range(LANES.bit_length() - 1):
        rows = [builder.shuffle_vector(rows[k], rows[k + half], order) for k in range(half) for order in orders]
    return rows


def _summed(builder: Value, x: Value) -> Value:
    """Return the sum of a vector's numbers, adding its halves until one number is left."""
    while x.type.count > 1:
        half = x.type.count // 2
        low, high = (ir.Constant(ir.VectorType(_INT32, half), list(range(k, k + half))) for k in (0, half))
        x = builder.fadd(builder.shuffle_vector(x, x, low), builder.shuffle_vector(x, x, high))
    return builder.extract_element(x, _INT32(0))
