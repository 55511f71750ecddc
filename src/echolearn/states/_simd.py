"""Operations on tiles, 4, 8 or 16 sequences in parallel: the five operations that numba does not make fast by itself.

A tile has L numbers (lanes, one for each sequence) for each unit, and is kept as one row of N L numbers. If these
operations were loops, the lanes of two units would be checked for overlap at every term, and single numbers would be
moved between a tile and the frames (K, N). So they are written in LLVM's vectors of L numbers, which LLVM maps to the
vectors of the processor.

The number of lanes is known to the compiler: the first argument of each operation, `lanes`, is a tuple of L zeros, and
numba compiles a version of its own for every type of arguments, of which the length of a tuple is a part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from echolearn.states._activations import INNER_OPTIONS
from echolearn.validation import Array

Lanes = tuple[int, ...]  # as many zeros as a tile has lanes
Value = Any  # a value, a type or a builder of LLVM or numba, which have no types

PARTIAL_SUMS = 4  # partial sums of a row, so that an addition need not wait for the previous one
TILES_PER_SUM = 8  # outer products that are summed at once, if each has at most HALF_LANES lanes; otherwise half
HALF_LANES = 8
STEPS_PER_SUM = 8  # states of a unit that are in registers at once while its statistics are summed
BLOCK_BYTES = 32  # bytes of the rows that are transposed at once: a vector of every processor since 2013

_INT = ir.IntType(64)
_INT32 = ir.IntType(32)
_FUSE = ("contract",)  # a product and a sum may be one instruction


@njit(nogil=True, error_model="numpy", **INNER_OPTIONS)
def add_product(lanes: Lanes, indptr: Array, indices: Array, data: Array, h: Array, z: Array) -> None:
    """Add A h to z for a CSR matrix A and tiles h, z."""
    for i in range(z.shape[0] // len(lanes)):
        _add_row(lanes, indices, data, indptr[i], indptr[i + 1], h, z, i)


@njit(nogil=True, error_model="numpy", **INNER_OPTIONS)
def add_outer(lanes: Lanes, indptr: Array, indices: Array, Z: Array, H: Array, out: Array) -> None:
    """Add Σ_s Z_s H_s' to out at the places of a CSR pattern; Z, H (`steps_at_once`, N L): the tiles of some steps."""
    N = Z.shape[1] // len(lanes)
    for i in range(N):
        _add_dots(lanes, indices, indptr[i], indptr[i + 1], Z, H, i, N, out)


@njit(nogil=True, error_model="numpy", **INNER_OPTIONS)
def load(lanes: Lanes, M: Array, r: int, stride: int, live: int, tile: Array) -> None:
    """Set lane b of a tile to M[r + b stride] for the live lanes, and to zero for those that have ended."""
    N, L = M.shape[1], len(lanes)
    block = min(L, BLOCK_BYTES // M.itemsize)
    whole = N // block * block
    for i in range(0, whole, block):
        for b in range(0, L, block):
            _load_block(lanes, M, r, stride, live, tile, i, b)
    for i in range(whole, N):
        for b in range(L):
            tile[i * L + b] = M[r + b * stride, i] if b < live else 0


@njit(nogil=True, error_model="numpy", **INNER_OPTIONS)
def store(lanes: Lanes, tile: Array, M: Array, r: int, stride: int, live: int) -> None:
    """Set M[r + b stride] to lane b of a tile for the live lanes."""
    N, L = M.shape[1], len(lanes)
    block = min(L, BLOCK_BYTES // M.itemsize)
    whole = N // block * block
    for i in range(0, whole, block):
        for b in range(0, L, block):
            _store_block(lanes, tile, i, b, M, r, stride, live)
    for i in range(whole, N):
        for b in range(live):
            M[r + b * stride, i] = tile[i * L + b]


@njit(nogil=True, error_model="numpy", **INNER_OPTIONS)
def add_statistics(
    lanes: Lanes, H: Array, counts: Array, slope: float, offsets: Array, sums: Array, extremes: Array, above: Array
) -> None:
    """Add the states of `STEPS_PER_SUM` steps, the tiles H (`STEPS_PER_SUM`, N L), to the statistics of sequences.

    counts: how many lanes count at each step. sums (2, N L): of states and their squares, in float64. extremes
    (2, N L): the largest and smallest state. above (Q, N L): the sums of h slope + offset (Q, N), between 0 and 1.
    """
    N = H.shape[1] // len(lanes)
    for i in range(N):
        _add_unit(lanes, H, counts, slope, offsets, sums, extremes, above, offsets.shape[0], i, N)


def steps_at_once(lanes: int) -> int:
    """Return the number of tiles of so many lanes whose outer products `add_outer` sums at once."""
    return TILES_PER_SUM if lanes <= HALF_LANES else TILES_PER_SUM // 2


def _block_of(lanes: int, itemsize: int) -> int:
    """Return the number of lanes, and of units, that are transposed at once."""
    return min(lanes, BLOCK_BYTES // itemsize)


@intrinsic
def _add_row(
    context: Value, lanes: Value, indices: Value, data: Value, start: Value, stop: Value, h: Value, z: Value, i: Value
) -> Value:
    """Add Σ_p data[p] h[indices[p]] over start <= p < stop to z[i]; the sums stay in registers."""

    def generate(*given: Value) -> Value:
        context, builder, signature, arguments = given
        L, indices, data, start, stop, h, z, i = _opened(context, builder, signature, arguments)
        vector = ir.VectorType(data.type.pointee, L)
        sums = [cgutils.alloca_once(builder, vector) for _ in range(PARTIAL_SUMS)]
        for s in sums:
            builder.store(_zeros(vector), s)

        def add_term(p: Value, s: Value) -> None:
            j = builder.zext(builder.load(builder.gep(indices, [p])), _INT)
            w = _spread(builder, builder.load(builder.gep(data, [p])), L)
            term = builder.fmul(w, _get(builder, h, _times(builder, j, L), L), flags=_FUSE)
            builder.store(builder.fadd(builder.load(s), term, flags=_FUSE), s)

        rest = builder.srem(builder.sub(stop, start), _INT(PARTIAL_SUMS))
        whole = builder.sub(stop, rest)
        with cgutils.for_range_slice(builder, start, whole, _INT(PARTIAL_SUMS), intp=_INT) as (p, _):
            for c, s in enumerate(sums):
                add_term(builder.add(p, _INT(c)), s)
        with cgutils.for_range_slice(builder, whole, stop, _INT(1), intp=_INT) as (p, _):
            add_term(p, sums[0])
        place = _times(builder, i, L)
        total = _get(builder, z, place, L)
        for s in sums:
            total = builder.fadd(total, builder.load(s), flags=_FUSE)
        _put(builder, total, z, place)
        return context.get_dummy_value()

    return types.void(lanes, indices, data, types.int64, types.int64, h, z, types.int64), generate


@intrinsic
def _add_dots(
    context: Value,
    lanes: Value,
    indices: Value,
    start: Value,
    stop: Value,
    Z: Value,
    H: Value,
    i: Value,
    N: Value,
    out: Value,
) -> Value:
    """Add Σ_s <Z[s, i], H[s, indices[p]]> to out[p] for start <= p < stop."""

    def generate(*given: Value) -> Value:
        context, builder, signature, arguments = given
        L, indices, start, stop, Z, H, i, N, out = _opened(context, builder, signature, arguments)
        steps = steps_at_once(L)

        def row(tiles: Value, s: int, i: Value) -> Value:
            return _get(builder, tiles, _times(builder, builder.add(builder.mul(_INT(s), N), i), L), L)

        mine = [row(Z, s, i) for s in range(steps)]
        with cgutils.for_range_slice(builder, start, stop, _INT(1), intp=_INT) as (p, _):
            j = builder.zext(builder.load(builder.gep(indices, [p])), _INT)
            total = builder.fmul(mine[0], row(H, 0, j), flags=_FUSE)
            for s in range(1, steps):
                total = builder.fadd(total, builder.fmul(mine[s], row(H, s, j), flags=_FUSE), flags=_FUSE)
            place = builder.gep(out, [p])
            dot = _summed(builder, total)
            if dot.type != out.type.pointee:
                dot = builder.fpext(dot, out.type.pointee)
            builder.store(builder.fadd(builder.load(place), dot), place)
        return context.get_dummy_value()

    return types.void(lanes, indices, types.int64, types.int64, Z, H, types.int64, types.int64, out), generate


@intrinsic
def _add_unit(
    context: object,
    lanes: types.Type,
    H: types.Array,
    counts: types.Type,
    slope: types.Type,
    offsets: types.Type,
    sums: types.Type,
    extremes: types.Type,
    above: types.Type,
    Q: types.Type,
    i: types.Type,
    N: types.Type,
) -> tuple[types.Type, Callable[..., ir.Value]]:
    """Add the states of unit i to its statistics; a lane that does not count adds 0 and is no extreme."""

    def generate(*given: ir.Value) -> ir.Value:
        context, builder, signature, arguments = given
        L, H, counts, slope, offsets, sums, extremes, above, Q, i, N = _opened(context, builder, signature, arguments)
        vector, wide = ir.VectorType(H.type.pointee, L), ir.VectorType(ir.DoubleType(), L)
        none, one, least = (ir.Constant(vector, [value] * L) for value in (0.0, 1.0, float("-inf")))
        lane = ir.Constant(ir.VectorType(_INT, L), list(range(L)))

        def place(row: ir.Value) -> ir.Value:
            return _times(builder, builder.add(builder.mul(row, N), i), L)

        def larger(x: ir.Value, y: ir.Value) -> ir.Value:
            return builder.select(builder.fcmp_ordered(">", x, y), x, y)

        def smaller(x: ir.Value, y: ir.Value) -> ir.Value:
            return builder.select(builder.fcmp_ordered("<", x, y), x, y)

        total, squares = (_get(builder, sums, place(_INT(k)), L) for k in (0, 1))
        high, low = (_get(builder, extremes, place(_INT(k)), L) for k in (0, 1))
        states = []
        for s in range(STEPS_PER_SUM):
            counted = builder.icmp_signed("<", lane, _spread(builder, builder.load(builder.gep(counts, [_INT(s)])), L))
            x = _get(builder, H, place(_INT(s)), L)
            states.append(builder.select(counted, x, least))
            low = smaller(builder.select(counted, x, builder.fneg(least)), low)
            high = larger(states[-1], high)
            precise = builder.select(counted, x, none)
            precise = precise if x.type == wide else builder.fpext(precise, wide)
            total = builder.fadd(total, precise)
            squares = builder.fadd(squares, builder.fmul(precise, precise, flags=_FUSE), flags=_FUSE)
        for found, target, k in ((total, sums, 0), (squares, sums, 1), (high, extremes, 0), (low, extremes, 1)):
            _put(builder, found, target, place(_INT(k)))
        steep = _spread(builder, slope, L)
        with cgutils.for_range(builder, Q, intp=_INT) as loop:
            offset = builder.load(builder.gep(offsets, [builder.add(builder.mul(loop.index, N), i)]))
            offset, total = _spread(builder, offset, L), _get(builder, above, place(loop.index), L)
            for x in states:
                share = builder.fadd(builder.fmul(x, steep, flags=_FUSE), offset, flags=_FUSE)
                total = builder.fadd(total, smaller(larger(share, none), one))
            _put(builder, total, above, place(loop.index))
        return context.get_dummy_value()

    kinds = (lanes, H, counts, H.dtype, offsets, sums, extremes, above, types.int64, types.int64, types.int64)
    return types.void(*kinds), generate


@intrinsic
def _load_block(
    context: Value, lanes: Value, M: Value, r: Value, stride: Value, live: Value, tile: Value, i: Value, b: Value
) -> Value:
    """Set lane b + c of unit i + k to M[r + (b + c) stride, i + k] for c and k below the size of a block."""

    def generate(*given: Value) -> Value:
        context, builder, signature, arguments = given
        width = _width(context, builder, signature.args[1], arguments[1])
        L, M, r, stride, live, tile, i, b = _opened(context, builder, signature, arguments)
        block = _block_of(L, signature.args[1].dtype.bitwidth // 8)
        rows = []
        for c in range(block):
            lane = builder.add(b, _INT(c))
            lives = builder.icmp_signed("<", lane, live)
            lane = builder.select(lives, lane, _INT(0))  # the row of an ended lane may be outside of M
            row = builder.add(r, builder.mul(lane, stride))
            x = _get(builder, M, builder.add(builder.mul(row, width), i), block)
            rows.append(builder.select(lives, x, _zeros(x.type)))
        for k, x in enumerate(_transposed(builder, rows)):
            _put(builder, x, tile, builder.add(_times(builder, builder.add(i, _INT(k)), L), b))
        return context.get_dummy_value()

    return types.void(lanes, M, types.int64, types.int64, types.int64, tile, types.int64, types.int64), generate


@intrinsic
def _store_block(
    context: Value, lanes: Value, tile: Value, i: Value, b: Value, M: Value, r: Value, stride: Value, live: Value
) -> Value:
    """Set M[r + (b + c) stride, i + k] to lane b + c of unit i + k for c and k below the size of a block."""

    def generate(*given: Value) -> Value:
        context, builder, signature, arguments = given
        width = _width(context, builder, signature.args[4], arguments[4])
        L, tile, i, b, M, r, stride, live = _opened(context, builder, signature, arguments)
        block = _block_of(L, signature.args[4].dtype.bitwidth // 8)
        places = [builder.add(_times(builder, builder.add(i, _INT(k)), L), b) for k in range(block)]
        rows = [_get(builder, tile, place, block) for place in places]
        for c, x in enumerate(_transposed(builder, rows)):
            lane = builder.add(b, _INT(c))
            with builder.if_then(builder.icmp_signed("<", lane, live), likely=True):
                row = builder.add(r, builder.mul(lane, stride))
                _put(builder, x, M, builder.add(builder.mul(row, width), i))
        return context.get_dummy_value()

    return types.void(lanes, tile, types.int64, types.int64, M, types.int64, types.int64, types.int64), generate


def _opened(context: Value, builder: Value, signature: Value, arguments: Value) -> list[Value]:
    """Return the number of lanes, and arrays (in C order) as the addresses of their first numbers."""
    lanes, *kinds = signature.args
    return [
        len(lanes),
        *(
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
            for kind, value in zip(kinds, arguments[1:], strict=True)
        ),
    ]


def _width(context: Value, builder: Value, kind: Value, value: Value) -> Value:
    """Return the number of columns of an array."""
    return cgutils.unpack_tuple(builder, context.make_array(kind)(context, builder, value).shape)[1]


def _times(builder: Value, x: Value, factor: int) -> Value:
    return builder.mul(x, _INT(factor))


def _zeros(vector: Value) -> Value:
    return ir.Constant(vector, [0.0] * vector.count)


def _address(builder: Value, data: Value, element: Value, count: int) -> Value:
    """Return the address of the vector of `count` numbers that begins at an element."""
    vector = ir.VectorType(data.type.pointee, count)
    return builder.bitcast(builder.gep(data, [element]), vector.as_pointer())


def _get(builder: Value, data: Value, element: Value, count: int) -> Value:
    """Load the vector that begins at an element; arrays are aligned to their numbers, not to vectors."""
    return builder.load(_address(builder, data, element, count), align=4)


def _put(builder: Value, x: Value, data: Value, element: Value) -> None:
    """Store a vector so that it begins at an element."""
    builder.store(x, _address(builder, data, element, x.type.count), align=4)


def _spread(builder: Value, x: Value, count: int) -> Value:
    """Return the vector (x, x, ...)."""
    undefined = ir.Constant(ir.VectorType(x.type, count), ir.Undefined)
    first = builder.insert_element(undefined, x, _INT32(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(_INT32, count), [0] * count))


def _transposed(builder: Value, rows: list[Value]) -> list[Value]:
    """Return the transpose of a square matrix of n = 2^k rows.

    In each of k rounds, rows i and i + n/2 are interleaved and become rows 2i and 2i + 1.
    """
    n = len(rows)
    half = n // 2
    orders = [
        ir.Constant(ir.VectorType(_INT32, n), [start + k // 2 + n * (k % 2) for k in range(n)]) for start in (0, half)
    ]
    for _ in range(n.bit_length() - 1):
        rows = [builder.shuffle_vector(rows[k], rows[k + half], order) for k in range(half) for order in orders]
    return rows


def _summed(builder: Value, x: Value) -> Value:
    """Return the sum of a vector's numbers, adding its halves until one number is left."""
    while x.type.count > 1:
        half = x.type.count // 2
        low, high = (ir.Constant(ir.VectorType(_INT32, half), list(range(k, k + half))) for k in (0, half))
        x = builder.fadd(builder.shuffle_vector(x, x, low), builder.shuffle_vector(x, x, high))
    return builder.extract_element(x, _INT32(0))
