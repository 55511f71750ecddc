"""Sixteen sequences side by side: the four moves on tiles that the compiler does not make fast by itself.

A tile (N, LANES) has a row for each unit and a column for each sequence. Written as loops, numba would have the rows
checked for overlap at every term, and move single numbers between a tile and the frames (K, N). So these moves
are written in LLVM's vectors of LANES numbers, which it fits to whatever the processor has.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from echolearn.sequences.batching import LANES

CHAINS = 4  # sums kept apart in a row, so that one need not wait for the other
STEPS = 4  # tiles whose outer products are summed at once

_INT = ir.IntType(64)
_FUSE = ("contract",)  # a product and a sum may be one instruction


@njit(nogil=True, cache=True, error_model="numpy")
def add_product(indptr: Any, indices: Any, data: Any, h: Any, z: Any) -> None:
    """z += A h for a CSR matrix A and tiles h, z."""
    for i in range(z.shape[0]):
        _add_row(indices, data, indptr[i], indptr[i + 1], h, z, i)


@njit(nogil=True, cache=True, error_model="numpy")
def add_outer(indptr: Any, indices: Any, Z: Any, H: Any, out: Any) -> None:
    """out += Σ_s Z_s H_s' at the places of a CSR pattern; Z, H (STEPS, N, LANES): tiles of some steps."""
    for i in range(Z.shape[1]):
        _add_dots(indices, indptr[i], indptr[i + 1], Z, H, i, Z.shape[1], out)


@njit(nogil=True, cache=True, error_model="numpy")
def load(M: Any, r: int, stride: int, live: int, tile: Any) -> None:
    """tile[:, b] = M[r + b stride] for the live lanes, zero for those that have ended."""
    whole = tile.shape[0] // LANES * LANES
    for i in range(0, whole, LANES):
        _load_block(M, r, stride, live, tile, i)
    for i in range(whole, tile.shape[0]):
        for b in range(LANES):
            tile[i, b] = M[r + b * stride, i] if b < live else 0


@njit(nogil=True, cache=True, error_model="numpy")
def store(tile: Any, M: Any, r: int, stride: int, live: int) -> None:
    """M[r + b stride] = tile[:, b] for the live lanes."""
    whole = tile.shape[0] // LANES * LANES
    for i in range(0, whole, LANES):
        _store_block(tile, i, M, r, stride, live)
    for i in range(whole, tile.shape[0]):
        for b in range(live):
            M[r + b * stride, i] = tile[i, b]


@intrinsic
def _add_row(context: Any, indices: Any, data: Any, start: Any, stop: Any, h: Any, z: Any, i: Any) -> Any:
    """z[i] += Σ_p data[p] h[indices[p]] over start <= p < stop, the sums in registers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        indices, data, start, stop, h, z, i = _opened(context, builder, signature, arguments)
        vector = ir.VectorType(data.type.pointee, LANES)
        sums = [cgutils.alloca_once(builder, vector) for _ in range(CHAINS)]
        for s in sums:
            builder.store(_zeros(vector), s)

        def add_term(p: Any, s: Any) -> None:
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
def _add_dots(context: Any, indices: Any, start: Any, stop: Any, Z: Any, H: Any, i: Any, N: Any, out: Any) -> Any:
    """out[p] += Σ_s <Z[s, i], H[s, indices[p]]> over start <= p < stop."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        indices, start, stop, Z, H, i, N, out = _opened(context, builder, signature, arguments)

        def row(tiles: Any, s: int, i: Any) -> Any:
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
def _load_block(context: Any, M: Any, r: Any, stride: Any, live: Any, tile: Any, i: Any) -> Any:
    """tile[i + k, b] = M[r + b stride, i + k] for k < LANES."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = _width(context, builder, signature.args[0], arguments[0])
        M, r, stride, live, tile, i = _opened(context, builder, signature, arguments)
        rows = []
        for b in range(LANES):
            lives = builder.icmp_signed("<", _INT(b), live)
            lane = builder.select(lives, _INT(b), _INT(0))  # an ended lane's row may be outside of M
            row = builder.add(r, builder.mul(lane, stride))
            x = _get(builder, M, builder.add(builder.mul(row, width), i))
            rows.append(builder.select(lives, x, _zeros(x.type)))
        for k, x in enumerate(_transposed(builder, rows)):
            _put(builder, x, tile, _times(builder, builder.add(i, _INT(k)), LANES))
        return context.get_dummy_value()

    return types.void(M, types.int64, types.int64, types.int64, tile, types.int64), generate


@intrinsic
def _store_block(context: Any, tile: Any, i: Any, M: Any, r: Any, stride: Any, live: Any) -> Any:
    """M[r + b stride, i + k] = tile[i + k, b] for k < LANES."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        width = _width(context, builder, signature.args[2], arguments[2])
        tile, i, M, r, stride, live = _opened(context, builder, signature, arguments)
        rows = [_get(builder, tile, _times(builder, builder.add(i, _INT(k)), LANES)) for k in range(LANES)]
        for b, x in enumerate(_transposed(builder, rows)):
            with builder.if_then(builder.icmp_signed("<", _INT(b), live), likely=True):
                row = builder.add(r, builder.mul(_INT(b), stride))
                _put(builder, x, M, builder.add(builder.mul(row, width), i))
        return context.get_dummy_value()

    return types.void(tile, types.int64, M, types.int64, types.int64, types.int64), generate


def _opened(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    """Arrays (C order) as the addresses of their first numbers, whole numbers as they are."""
    return [
        context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
        for kind, value in zip(signature.args, arguments, strict=True)
    ]


def _width(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return cgutils.unpack_tuple(builder, context.make_array(kind)(context, builder, value).shape)[1]


def _times(builder: Any, x: Any, factor: int) -> Any:
    return builder.mul(x, _INT(factor))


def _zeros(vector: Any) -> Any:
    return ir.Constant(vector, [0.0] * LANES)


def _address(builder: Any, data: Any, element: Any) -> Any:
    vector = ir.VectorType(data.type.pointee, LANES)
    return builder.bitcast(builder.gep(data, [element]), vector.as_pointer())


def _get(builder: Any, data: Any, element: Any) -> Any:
    return builder.load(_address(builder, data, element), align=4)


def _put(builder: Any, x: Any, data: Any, element: Any) -> None:
    builder.store(x, _address(builder, data, element), align=4)


def _spread(builder: Any, x: Any) -> Any:
    """(x, x, ...)."""
    anything = ir.Constant(ir.VectorType(x.type, LANES), ir.Undefined)
    first = builder.insert_element(anything, x, ir.IntType(32)(0))
    return builder.shuffle_vector(first, anything, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """LANES vectors as a matrix, transposed: log2(LANES) times, rows k and k + LANES/2 become rows 2k and 2k + 1,
    their numbers taken in turns."""
    half = LANES // 2
    turns = ir.VectorType(ir.IntType(32), LANES)
    first, second = (
        ir.Constant(turns, [start + k // 2 + LANES * (k % 2) for k in range(LANES)]) for start in (0, half)
    )
    for _ in range(LANES.bit_length() - 1):
        rows = [builder.shuffle_vector(rows[k], rows[k + half], turn) for k in range(half) for turn in (first, second)]
    return rows


def _summed(builder: Any, x: Any) -> Any:
    """The sum of a vector's numbers, by halves."""
    while x.type.count > 1:
        half = x.type.count // 2
        low, high = (ir.Constant(ir.VectorType(ir.IntType(32), half), list(range(k, k + half))) for k in (0, half))
        x = builder.fadd(builder.shuffle_vector(x, x, low), builder.shuffle_vector(x, x, high))
    return builder.extract_element(x, ir.IntType(32)(0))
