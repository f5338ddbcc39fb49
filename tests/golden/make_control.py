#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes control/NAME.onnx and control/control.json: models with control flow, functions and shapes that depend on data.

Results are ONNX Runtime's, and where its reference evaluator takes the model, equal to that one's. All numbers are
small integers, so that nothing is rounded. README.md has the form.

Run with:  $(benchmarks/peers/make-venv)/bin/python tests/golden/make_control.py
"""
import pathlib
import warnings

import numpy as np
import onnx
import onnx.parser
import onnxruntime
from golden_json import write
from onnx.reference import ReferenceEvaluator

OUT = pathlib.Path(__file__).with_name("control")
HEAD = '<ir_version: 9, opset_import: ["" : {}]>\n'


def floats(*shape):
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 7 - 3).astype(np.float32)


# name -> (model, inputs of each run)
MODELS = {
    # A batch that may not be 1: eight frames are a clip.
    "frames_of_clips": ("""
g (float[N, 3] x) => (float[M, 8, 3] y) <int64[3] clips = {-1, 8, 3}> {
  positive = Relu (x)
  y = Reshape (positive, clips)
}""", [[floats(16, 3)], [floats(8, 3)]]),
    # Types of a body that its file leaves out are those of what it is given; without an iteration they show.
    "loop_of_no_types": ("""
g (int64 trips, int32 start, int32 step) => (int32 last, int32[N] y) {
  last, y = Loop (trips, , start) <body = b (int64 i, bool c, before) => (go_on, after, item) {
    go_on = Identity (c)
    after = Add (before, step)
    item = Identity (before) }>
}""", [[np.int64(3), np.int32(2), np.int32(5)], [np.int64(0), np.int32(2), np.int32(5)]]),
    # As some exporters write it: the number of an iteration is a list of one, as is the condition.
    "loop_of_lists": ("""
g (float[N, 3] x, int64 trips) => (float[3] total, float[M, 3] sums) <float[3] zeros = {0, 0, 0}, int64[1] first = {0}> {
  total, sums = Loop (trips, , zeros) <body = b (int64[1] i, bool[1] c, float[3] before) => (bool[1] go_on, float[3] after, float[3] sum) {
    go_on = Identity (c)
    row = Squeeze (i, first)
    added = Gather (x, row)
    after = Add (before, added)
    sum = Identity (after) }>
}""", [[floats(3, 3), np.int64(3)], [floats(2, 3), np.int64(1)]]),
    # Each part has outputs of the graph, and values that are read by parts behind the next ones, in branches and bodies, too.
    "stops_behind_stops": ("""
g (float[N] x) => (float[A] first, float[B] second, float[C] third, int64[2] count, float[1] last, float[2, 2] fixed, float[2, 2] twice)
  <float[2, 2] square = {1, 2, 3, 4}, float zero = {0}, float three = {3}, float[1] start = {5}> {
  fixed = MatMul (square, square)
  twice = Add (fixed, square)
  doubled = Add (x, x)
  is_positive = Greater (doubled, zero)
  a = Compress <axis = 0> (doubled, is_positive)
  places = NonZero (doubled)
  count = Shape (places)
  first = Neg (a)
  is_small = Less (a, three)
  b = Compress <axis = 0> (a, is_small)
  second = Relu (b)
  kinds = Unique (b)
  sum = ReduceSum <keepdims = 0> (second)
  moved = Sub (doubled, sum)
  is_negative = Less (moved, zero)
  c = Compress <axis = 0> (moved, is_negative)
  is_large = Greater (sum, three)
  third = If (is_large) <
    then_branch = then () => (float[D] d) { d = Concat <axis = 0> (c, a) },
    else_branch = other () => (float[E] e) { e = Add (c, sum) }>
  length = Shape (third)
  none = Constant <value_ints = [0]> ()
  trips = Squeeze (length, none)
  begins = Greater (three, zero)
  end = Loop (trips, begins, start) <body = body (int64 i, bool go, float[1] before) => (bool go_on, float[1] after) {
    go_on = Identity (go)
    f = Cast <to = 1> (i)
    added = Add (f, sum)
    after = Add (before, added) }>
  last = Neg (end)
}""", [[floats(7)], [floats(12)], [floats(7) + 1], [floats(7)], [floats(2)]]),
    # The shape that one branch makes says which one is the next, which has branches of its own or stops at data.
    "branches_behind_branches": ("""
g (float[N] x) => (float[M] y, float[L] last) <int64 six = {6}, int64 twenty = {20}, int64 thirty = {30}, float zero = {0}> {
  count = Size (x)
  is_large = Greater (count, six)
  a = If (is_large) <
    then_branch = twice () => (float[A] c) { c = Concat <axis = 0> (x, x) },
    else_branch = once () => (float[B] d) { d = Neg (x) }>
  made = Size (a)
  is_larger = Greater (made, twenty)
  b = If (is_larger) <
    then_branch = then () => (float[C] e) {
      is_largest = Greater (made, thirty)
      e = If (is_largest) <
        then_branch = most () => (float[D] f) { f = Concat <axis = 0> (a, x) },
        else_branch = more () => (float[E] h) { h = Abs (a) }> },
    else_branch = other () => (float[F] i) {
      is_positive = Greater (a, zero)
      i = Compress <axis = 0> (a, is_positive) }>
  y = Relu (b)
  left = Size (b)
  is_left = Greater (left, six)
  last = If (is_left) <
    then_branch = many () => (float[G] j) { j = Neg (b) },
    else_branch = few () => (float[H] k) { k = Add (b, b) }>
}""", [[floats(4)], [floats(9)], [floats(12)], [floats(17)], [floats(9) + 3], [floats(12)]]),
    "if_by_value": ("""
g (float[N] x) => (float[M] y) {
  axes = Constant <value_ints = [0]> ()
  sum = ReduceSum <keepdims = 0> (x, axes)
  zero = Constant <value_float = 0.0> ()
  positive = Greater (sum, zero)
  y = If (positive) <
    then_branch = then () => (float[A] a) { double = Constant <value_float = 2.0> () a = Mul (x, double) },
    else_branch = other () => (float[B] b) { b = Concat <axis = 0> (x, x) }>
}""", [[floats(5) + 1], [floats(5) - 2], [floats(2) + 4]]),
    "if_by_rank": ("""
g (float[N, C] x) => (float[M] y) {
  shape = Shape (x)
  rank = Shape (shape)
  two = Constant <value_ints = [2]> ()
  flat = Equal (rank, two)
  made = If (flat) <
    then_branch = then () => (float[A] a) { minus = Constant <value_ints = [-1]> () a = Reshape (x, minus) },
    else_branch = other () => (float[B] b) { b = Identity (x) }>
  y = Relu (made)
}""", [[floats(2, 3)], [floats(4, 1)]]),
    "if_by_input": ("""
g (int64 which, float[N] x) => (float[N] y) {
  sixteen = Constant <value_int = 16> ()
  is_sixteen = Equal (which, sixteen)
  y = If (is_sixteen) <
    then_branch = then () => (float[A] a) { a = Neg (x) },
    else_branch = other () => (float[B] b) { b = Abs (x) }>
}""", [[np.int64(16), floats(6)], [np.int64(8), floats(6)], [np.int64(16), floats(3)]]),
    "if_in_if": ("""
g (float[N] x, bool p, bool q) => (float[N] y, float[N] z) {
  y, z = If (p) <
    then_branch = then () => (float[N] a, float[N] b) {
      twice = Add (x, x)
      a, b = If (q) <
        then_branch = both () => (float[N] c, float[N] d) { c = Add (twice, x) d = Identity (twice) },
        else_branch = one () => (float[N] e, float[N] f) { e = Neg (twice) f = Neg (x) }>
    },
    else_branch = other () => (float[N] s, float[N] t) { s = Abs (x) t = Relu (x) }>
}""", [[floats(4), np.bool_(p), np.bool_(q)] for p in (0, 1) for q in (0, 1)]),
    "loop_for": ("""
g (int64 n, float[K] x) => (float[K] y, float[T, K] all) {
  go = Constant <value_int = 1> ()
  yes = Cast <to = 9> (go)
  y, all = Loop (n, yes, x) <
    body = step (int64 i, bool before, float[K] state) => (bool after, float[K] next, float[K] seen) {
      after = Identity (before)
      index = Cast <to = 1> (i)
      more = Add (state, index)
      next = Add (more, x)
      seen = Neg (next)
    }>
}""", [[np.int64(3), floats(4)], [np.int64(1), floats(4)], [np.int64(5), floats(2)]]),
    "loop_while": ("""
g (float[N] x, float limit) => (float[M] y, int64 count) {
  yes = Constant <value = bool {1}> ()
  zero = Constant <value_int = 0> ()
  one = Constant <value_int = 1> ()
  axes = Constant <value_ints = [0]> ()
  y, count = Loop ("", yes, x, zero) <
    body = step (int64 i, bool before, float[A] state, int64 c) => (bool after, float[B] next, int64 d) {
      next = Concat <axis = 0> (state, x)
      d = Add (c, one)
      sum = ReduceSum <keepdims = 0> (next, axes)
      after = Less (sum, limit)
    }>
}""", [[floats(3) + 4, np.float32(40)], [floats(3) + 4, np.float32(0)]]),
    "loop_in_loop": ("""
g (int64 n, int64[K] x) => (int64[K] y) {
  yes = Constant <value = bool {1}> ()
  y = Loop (n, yes, x) <
    body = outer (int64 i, bool before, int64[K] state) => (bool after, int64[K] next) {
      after = Identity (before)
      next = Loop (i, before, state) <
        body = inner (int64 j, bool b, int64[K] s) => (bool a, int64[K] t) {
          a = Identity (b)
          sum = Add (s, i)
          t = Add (sum, x)
        }>
    }>
}""", [[np.int64(4), np.arange(3)], [np.int64(0), np.arange(3)]]),
    "loop_of_older_form": ("""
g (int64 n, float[2] x) => (float[2] y, float[N, 2] all) {
  yes = Constant <value = bool {1}> ()
  y, all = Loop (n, yes, x) <
    body = step (int64 i, bool before, float[2] state) => (bool after, float[2] next, float[2] seen) {
      after = Identity (before)
      next = Add (state, x)
      row = Unsqueeze <axes = [0]> (next)
      seen = Squeeze <axes = [0]> (row)
    }>
}""", [[np.int64(3), floats(2)]]),
    # States that iterations only hand on: a constant, a computed one through Identity, one that is seen besides, and one
    # that nothing reads. With no iteration they are what they were.
    "loop_of_invariants": ("""
g (int64 n, float[2, 2] x, float[2] v) => (float[2, 2] y, float[2, 2] z, float[2] kept, float[T, 2] all) <
    float[2, 2] w = {1, 0, 2, -1}> {
  yes = Constant <value = bool {1}> ()
  shift = Neg (x)
  y, w_last, shift_last, kept, unread, all = Loop (n, yes, x, w, shift, v, shift) <
    body = step (int64 i, bool before, float[2, 2] state, float[2, 2] weight, float[2, 2] offset, float[2] seen,
                 float[2, 2] other) =>
        (bool after, float[2, 2] next, float[2, 2] weight, float[2, 2] same, float[2] seen, float[2, 2] other,
         float[2] copy) {
      after = Identity (before)
      product = MatMul (state, weight)
      next = Add (product, offset)
      same = Identity (offset)
      copy = Identity (seen)
    }>
  z = Add (w_last, shift_last)
}""", [[np.int64(3), floats(2, 2), floats(2)], [np.int64(1), floats(2, 2), floats(2)]]),
    "loops_of_invariants": ("""
g (int64 n, float[2] x) => (float[2] y, float[2] z) {
  yes = Constant <value = bool {1}> ()
  two = Constant <value_floats = [2.0, 2.0]> ()
  four = Add (two, two)
  y, four_last, x_last = Loop (n, yes, x, four, x) <
    body = outer (int64 i, bool before, float[2] state, float[2] four_here, float[2] x_here) =>
        (bool after, float[2] next, float[2] four_here, float[2] x_here) {
      after = Identity (before)
      sum, four_inner, x_inner = Loop (i, before, state, four_here, x_here) <
        body = inner (int64 j, bool b, float[2] s, float[2] f, float[2] v) =>
            (bool a, float[2] t, float[2] f, float[2] v) {
          a = Identity (b)
          u = Add (s, f)
          w = Add (u, four)
          t = Sub (w, v)
        }>
      next = Add (sum, four_inner)
    }>
  z = Add (four_last, x_last)
}""", [[np.int64(3), floats(2)], [np.int64(0), floats(2)]]),
    "loop_of_nothing_else": ("""
g (int64 n, float[2] x) => (float[2] y) {
  yes = Constant <value = bool {1}> ()
  last = Loop (n, yes, x) <
    body = step (int64 i, bool before, float[2] state) => (bool after, float[2] state) { after = Identity (before) }>
  y = Neg (last)
}""", [[np.int64(3), floats(2)], [np.int64(0), floats(2)]]),
    # ONNX Runtime loses a state of a Scan that is handed on without an Identity after the first iteration.
    "scan_of_invariants": ("""
g (float[2] start, float[N, 2] a) => (float[2] y, float[2] z, float[N, 2] c) <float[2] w = {2, -1}> {
  y, z, c = Scan <num_scan_inputs = 1,
    body = step (float[2] s, float[2] weight, float[2] p) => (float[2] t, float[2] same, float[2] u) {
      same = Identity (weight)
      m = Mul (p, weight)
      t = Add (s, m)
      u = Neg (t)
    }> (start, w, a)
}""", [[floats(2), floats(4, 2)], [floats(2), floats(1, 2)]]),
    # Shapes follow from the counter, which has another value in each of more iterations than plans are made for.
    "loop_that_counts": ("""
g (int64 n, float[N] x) => (float[M] y, float[T, 1] all) {
  yes = Constant <value = bool {1}> ()
  one = Constant <value_ints = [1]> ()
  three = Constant <value_int = 3> ()
  none = Constant <value_floats = [1.0]> ()
  y, all = Loop (n, yes, none) <
    body = step (int64 i, bool before, float[A] state) => (bool after, float[B] next, float[1] seen) {
      after = Identity (before)
      zero = Constant <value_ints = [0]> ()
      minus = Constant <value_ints = [-1]> ()
      begin = Reshape (i, minus)
      end = Add (begin, one)
      piece = Slice (x, begin, end, zero)
      so_far = Slice (x, zero, end, zero)
      sum = ReduceSum <keepdims = 1> (so_far, zero)
      late = Greater (i, three)
      signed = If (late) <
        then_branch = then () => (float[P] p) { p = Neg (piece) },
        else_branch = other () => (float[Q] q) { q = Mul (piece, sum) }>
      next = Concat <axis = 0> (state, signed)
      seen = Add (sum, signed)
    }>
}""", [[np.int64(9), floats(9)], [np.int64(2), floats(5)], [np.int64(7), floats(8)]]),
    "scan": ("""
g (float[2] start, float[N, 2] a, float[2, N] b) => (float[2] y, float[2, N] c, float[N, 2] d) {
  y, c, d = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
                  scan_output_axes = [1, 0], scan_output_directions = [1, 0],
    body = step (float[2] s, float[2] p, float[2] q) => (float[2] t, float[2] u, float[2] v) {
      t0 = Add (s, p)
      t = Add (t0, start)
      u = Mul (p, q)
      v = Sub (t, q)
    }> (start, a, b)
}""", [[floats(2), floats(4, 2), floats(2, 4)], [floats(2), floats(1, 2), floats(2, 1)]]),
    "shape_by_data": ("""
g (float[N] x) => (float[A, B] y, float[M] z) {
  axes = Constant <value_ints = [0]> ()
  most = ReduceMax <keepdims = 1> (x, axes)
  rows = Cast <to = 7> (most)
  two = Constant <value_ints = [2]> ()
  shape = Concat <axis = 0> (rows, two)
  ones = ConstantOfShape <value = float[1] {1.0}> (shape)
  column = Constant <value = float[2, 2] {1.0, 2.0, 3.0, 4.0}> ()
  product = MatMul (ones, column)
  y = Relu (product)
  sums = ReduceSum <keepdims = 0> (y, axes)
  total = ReduceSum <keepdims = 1> (sums, axes)
  long = Cast <to = 7> (total)
  zeros = ConstantOfShape <value = float[1] {2.0}> (long)
  z = Neg (zeros)
}""", [[floats(5)], [floats(2) + 4], [floats(5) + 2]]),
    "convolution_between": ("""
g (float[1, 1, 4, 4] x, int64[2] size) => (float[1, 1, A, B] y) {
  w = Constant <value = float[1, 1, 2, 2] {1.0, 0.0, 2.0, -1.0}> ()
  c = Conv (x, w)
  axes = Constant <value_ints = [0, 1, 2, 3]> ()
  most = ReduceMax <keepdims = 0> (c, axes)
  limit = Constant <value_float = 3.0> ()
  high = Greater (most, limit)
  one = Constant <value_ints = [1, 1]> ()
  made = If (high) <
    then_branch = then () => (float[1, 1, D, E] a) { reps = Concat <axis = 0> (one, size) a = Tile (c, reps) },
    else_branch = other () => (float[1, 1, D, E] b) { b = Identity (c) }>
  y = Conv (made, w)
}""", [[floats(1, 1, 4, 4), np.array([1, 2])], [floats(1, 1, 4, 4) - 3, np.array([2, 2])]]),
}

# With functions, which have a head of their own.
FUNCTIONS = {
    "functions": ("""
<ir_version: 9, opset_import: ["" : 18, "own" : 1]>
g (float[N] x) => (float[N] y, float[N] z) {
  y = own.scaled <factor = 3.0> (x)
  z = own.both (x, y)
}
<domain: "own", opset_import: ["" : 18]>
scaled <factor> (a) => (b) {
  f = Constant <value_float: float = @factor> ()
  b = Mul (a, f)
}
<domain: "own", opset_import: ["" : 18, "own" : 1]>
both (p, q) => (r) {
  s = own.scaled <factor = 2.0> (p)
  t = own.scaled <factor = -1.0> (q)
  zero = Constant <value_ints = [0]> ()
  sum = ReduceSum <keepdims = 0> (s, zero)
  nothing = Constant <value_float = 0.0> ()
  positive = Greater (sum, nothing)
  r = If (positive) <
    then_branch = then () => (float[N] a) { a = Add (s, t) },
    else_branch = other () => (float[N] b) { half = Constant <value_float = 0.5> () c = Mul (t, half) b = Sub (s, c) }>
}""", [[floats(4) + 3], [floats(4) * 2 - 6]]),
}

# What follows from shapes, from short inputs and from constants lies on its grid as anything else does.
PAIR = "float scale = {{{0}}}, int8 zero = {{1}}"
GRIDS = {
    "grid_of_a_shape": (f"""
g (float[N] x) => (float[N] y) <{PAIR.format(0.5)}, float part = {{0.3}}> {{
  shape = Shape (x)
  length = Cast <to = 1> (shape)
  share = Mul (length, part)
  integers = QuantizeLinear (share, scale, zero)
  rounded = DequantizeLinear (integers, scale, zero)
  turned = Neg (rounded)
  y = Mul (x, turned)
}}""", [[floats(3)], [floats(5)]]),
    "grid_of_an_input": (f"""
g (float[N] x) => (float[N] y, float[M] z) <{PAIR.format(0.5)}> {{
  integers = QuantizeLinear (x, scale, zero)
  rounded = DequantizeLinear (integers, scale, zero)
  y = Abs (rounded)
  z = Unique (rounded)
}}""", [[floats(3) * np.float32(0.3)], [floats(6) * np.float32(0.7)]]),
    "grid_of_a_grid": (f"""
g (float[N, 3] x) => (float[N, 3] y) <{PAIR.format(0.5)}, float wide = {{2}}, float[3] w = {{1.3, -2.2, 0.4}}> {{
  integers = QuantizeLinear (w, scale, zero)
  rounded = DequantizeLinear (integers, scale, zero)
  again = QuantizeLinear (rounded, wide, zero)
  coarse = DequantizeLinear (again, wide, zero)
  y = Add (x, coarse)
}}""", [[floats(2, 3)]]),
    "scale_on_a_grid": (f"""
g (float[N, 3] x) => (float[N, 3] y) <{PAIR.format(0.5)}, int8[3] w = {{5, -7, 1}}, int8 s = {{4}}> {{
  double = DequantizeLinear (s, scale, zero)
  rounded = DequantizeLinear (w, double, zero)
  y = Add (x, rounded)
}}""", [[floats(2, 3)]]),
    "scale_of_the_second_output": (f"""
g (float[N, 3] x) => (float[N, 3] y) <{PAIR.format(0.5)}, float[1, 1, 1] one = {{1}}, float[1, 1, 1] w = {{0.25}}> {{
  , second = RNN <hidden_size = 1, activations = ["Relu"]> (one, w, one)
  fine = Squeeze (second)
  integers = QuantizeLinear (x, fine, zero)
  y = DequantizeLinear (integers, fine, zero)
}}""", [[floats(2, 3) * np.float32(0.3)]]),
    "scale_of_a_branch": (f"""
g (float[N, 3] x) => (float[N, 3] y) <{PAIR.format(0.5)}, bool which = {{1}}> {{
  fine = If (which) <
    then_branch = then () => (float a) {{ a = Constant <value_float = 0.25> () }},
    else_branch = other () => (float b) {{ b = Constant <value_float = 4.0> () }}>
  integers = QuantizeLinear (x, fine, zero)
  y = DequantizeLinear (integers, fine, zero)
}}""", [[floats(2, 3) * np.float32(0.3)]]),
    "scale_that_is_found": (f"""
g (float[N, 3] x) => (float[N, 3] y) <{PAIR.format(0.5)}, float[3] all = {{0.25, 0.25, 0.25}}> {{
  found = Unique (all)
  axes = Constant <value_ints = [0]> ()
  fine = Squeeze (found, axes)
  integers = QuantizeLinear (x, fine, zero)
  y = DequantizeLinear (integers, fine, zero)
}}""", [[floats(2, 3) * np.float32(0.3)]]),
    # Shapes that follow from what lies on a grid.
    "range_to_a_shape_on_a_grid": (f"""
g (float[1, N] x) => (float[M] y) <{PAIR.format(0.25)}, float one = {{1}}, int64 axis = {{1}}> {{
  shape = Shape (x)
  length = Gather (shape, axis)
  number = Cast <to = 1> (length)
  integers = QuantizeLinear (number, scale, zero)
  rounded = DequantizeLinear (integers, scale, zero)
  y = Range (one, rounded, one)
}}""", [[floats(1, 5)], [floats(1, 9)]]),
    "range_of_inputs_on_a_grid": (f"""
g (float a, float b, float c) => (float[M] y) <{PAIR.format(0.25)}> {{
  a_integers = QuantizeLinear (a, scale, zero)
  a_rounded = DequantizeLinear (a_integers, scale, zero)
  b_integers = QuantizeLinear (b, scale, zero)
  b_rounded = DequantizeLinear (b_integers, scale, zero)
  c_integers = QuantizeLinear (c, scale, zero)
  c_rounded = DequantizeLinear (c_integers, scale, zero)
  coarse = Range (a_rounded, b_rounded, c_rounded)
  y_integers = QuantizeLinear (coarse, scale, zero)
  y = DequantizeLinear (y_integers, scale, zero)
}}""", [[np.float32(a) for a in (1.1, 5.2, 0.8)], [np.float32(a) for a in (3.3, -2, -0.6)]]),
    "scales_on_a_grid": (f"""
g (float[1, 2, 3, 3] x, float[4] scales) => (float[A, B, C, D] y) <{PAIR.format(0.5)}> {{
  image_integers = QuantizeLinear (x, scale, zero)
  image = DequantizeLinear (image_integers, scale, zero)
  integers = QuantizeLinear (scales, scale, zero)
  rounded = DequantizeLinear (integers, scale, zero)
  large = Resize <mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (image, , rounded)
  y_integers = QuantizeLinear (large, scale, zero)
  y = DequantizeLinear (y_integers, scale, zero)
}}""", [[floats(1, 2, 3, 3), np.array([1, 1, 2.1, 1.4], np.float32)], [floats(1, 2, 3, 3), np.array([1, 1, 1, 3], np.float32)]]),
    "depth_on_a_grid": (f"""
g (int64[N] x, float depth) => (float[N, M] y) <{PAIR.format(0.5)}, float[2] off_on = {{-1, 2}}> {{
  integers = QuantizeLinear (depth, scale, zero)
  rounded = DequantizeLinear (integers, scale, zero)
  y = OneHot (x, rounded, off_on)
}}""", [[np.array([0, 2, 1]), np.float32(2.9)], [np.array([4, 2]), np.float32(5)]]),
    "hertz_on_a_grid": (f"""
g (float low, float high) => (float[17, 4] y) <{PAIR.format(100)}, int64 bands = {{4}}, int64 length = {{32}}, int64 rate = {{16000}}> {{
  low_integers = QuantizeLinear (low, scale, zero)
  low_rounded = DequantizeLinear (low_integers, scale, zero)
  high_integers = QuantizeLinear (high, scale, zero)
  high_rounded = DequantizeLinear (high_integers, scale, zero)
  y = MelWeightMatrix (bands, length, rate, low_rounded, high_rounded)
}}""", [[np.float32(130), np.float32(7960)], [np.float32(0), np.float32(4000)]]),
}


def reference(name, model):
    """ONNX's own evaluator, or None where it does not take the model."""
    # "Scan is not implemented for other output input_direction than 0", "Unknown activation function 'Relu'"
    # "need at least one array to concatenate"; and it gives a body the number of an iteration as it is.
    if name in ("scan", "scale_of_the_second_output", "loop_of_no_types", "loop_of_lists"):
        return None
    return ReferenceEvaluator(model)


def expected(name, model, runs):
    options = onnxruntime.SessionOptions()
    if name in GRIDS:  # of two pairs in a row it leaves one
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    results = []
    for inputs in runs:
        feed = {n: np.asarray(x) for n, x in zip(names, inputs)}
        outputs = session.run(None, feed)
        evaluator = reference(name, model)
        for ours, theirs in zip(outputs, evaluator.run(None, feed) if evaluator else outputs):
            np.testing.assert_array_equal(ours, theirs, err_msg=name)
        results.append({"inputs": list(feed.values()), "outputs": outputs})
    return results


def main():
    warnings.simplefilter("ignore")
    onnxruntime.set_default_logger_severity(4)
    OUT.mkdir(exist_ok=True)
    cases = []
    opset = lambda name: 11 if name == "loop_of_older_form" else 21 if name in GRIDS else 18
    models = {name: (HEAD.format(opset(name)) + text, runs) for name, (text, runs) in (MODELS | GRIDS).items()} | FUNCTIONS
    for name, (text, runs) in models.items():
        model = onnx.parser.parse_model(text)
        onnx.checker.check_model(model, full_check=False)
        onnx.save(model, OUT / f"{name}.onnx")
        cases.append({"name": name, "runs": expected(name, model, runs)})
    write(OUT / "control.json", {"cases": cases})


if __name__ == "__main__":
    main()
