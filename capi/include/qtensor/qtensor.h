/* SPDX-License-Identifier: Apache-2.0
 *
 * qtensor/qtensor.h: int8 quantization of neural networks. A program includes this one file and links libqtensor.
 *
 * From a float ONNX model to an int8 one, checks of the returned status left out:
 *
 *     qmodel_load(&model, "net.onnx");
 *     qconfig_create(&config, "onnx");
 *     qmodel_prepare(&prepared, model, config, QTN_PTQ);
 *     for (i = 0; i < sample_count; ++i) qmodel_calibrate(prepared, &samples[i], 1);
 *     qmodel_convert(&int8, prepared, NULL);
 *     qmodel_save(int8, "net-int8.onnx", NULL);
 *
 * This header is the manual, in the order in which one learns the library:
 *
 *     1 library and errors      5 observers      9 trainers
 *     2 attributes              6 operators     10 blobs
 *     3 quantizers              7 models        11 tensors in files and in other libraries
 *     4 tensors                 8 sessions      12 layers
 *
 * Rules that hold for every function and are not repeated below:
 *
 * - Status. What can fail returns a qstatus: QTN_OK or the reason. qerror_message() then has one line for people. What
 *   cannot fail returns its value. The library never prints, exits or aborts.
 * - Common errors can come from every function that returns a status, and are not listed again: QTN_EINVAL for a NULL
 *   that is not allowed, a number that no enumeration has or an option that is not known; QTN_ENOMEM for want of
 *   memory, which leaves all objects as they were; and QTN_EINTERNAL for a defect of the library.
 * - Outputs come first, and are set to NULL or 0 before anything can fail.
 * - Ownership. Each handle that a function puts into `*out` or `outputs[i]` belongs to the caller, who gives it to the
 *   `free` function of its noun, once. Pointers that go in are borrowed for the call only; what must be kept is copied.
 *   Pointers that accessors return live as long as the handle they were asked of.
 * - NULL. `free(NULL)` does nothing. QTN_OPT marks parameters that may be NULL. Any other NULL is QTN_EINVAL and the
 *   message names the parameter; an accessor given NULL returns 0 or NULL. An array is passed as (items, count); with
 *   count 0 it is not looked at and may be NULL. Bytes to load are not such an array: NULL is refused.
 * - Threads. A `const` handle may be used from many threads at once; a non-const one needs exclusive access. Results
 *   do not depend on the number of threads.
 * - Options go by name in a qattrs. The function that takes them has a table: key, type, default, meaning. A row that
 *   has the name of a function in place of a key stands for the rows of that function's table.
 * - Strings are UTF-8. Sizes are in bytes where they are called nbytes or size, in elements everywhere else. */
#ifndef QTENSOR_QTENSOR_H
#define QTENSOR_QTENSOR_H

#include "qtensor/types.h"
#include "qtensor/version.h"

/* ---------------------------------------------------------------------------------------------------------------------
 * 1. Library and errors
 *
 * Settings here are of the whole process. Nothing needs to be initialised or shut down: threads start at the first run
 * that needs them, are made again after fork(), and end when the library is unloaded. */

/** Version of the library in use: major << 16 | minor << 8 | patch. Compare with QTN_VERSION_MAJOR and
 * QTN_VERSION_MINOR, which are those of the headers that a program was compiled with. Never fails.
 *
 * @return major << 16 | minor << 8 | patch
 * @since 0.1 */
QTN_API uint32_t qlib_version(void);

/** The instruction set that kernels are chosen for now: "scalar"; on x86-64 "avx2", "avxvnni", "avx512",
 * "avx512vnni" or "amx"; on AArch64 "neon", "dotprod" or "i8mm". At start it is the best one of this CPU, lowered by the
 * environment variable QTENSOR_ISA if that names one. The text is static. Every instruction set gives the same
 * integers, bit for bit.
 *
 * A process has the tiles of "amx" only if it asks Linux for them, which this does when it is first asked, or a kernel is
 * first chosen. Signal handlers on stacks of their own then need sysconf(_SC_MINSIGSTKSZ) bytes or more; where a thread has
 * a smaller one already, the best is "avx512vnni".
 *
 * @return the name of the instruction set, never NULL
 * @since 0.1 */
QTN_API const char *qlib_isa(void);

/** Chooses the instruction set for sessions created and operators run from now on, to measure or to debug.
 *
 * @param isa a name that qlib_isa() can return, at most the best one of this CPU
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an unknown name
 * @retval QTN_EUNSUPPORTED for one that this CPU does not have
 * @since 0.1 */
QTN_API qstatus qlib_set_isa(const char *isa);

/** Sets how many threads one call may use, the caller's own included.
 *
 * @param count threads; 0 returns to the default: as many as CPU affinity and the cgroup's quota allow
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL where `count` is negative or over 1024
 * @since 0.1 */
QTN_API qstatus qlib_set_threads(int32_t count);

/** Sets limits on what models may take of this process. No honest model meets those that hold from the start; a program
 * that opens files of strangers may want less. A limit holds in all threads, from then on. What is over one is
 * QTN_ENOMEM with the numbers in the message, and leaves all objects as they were.
 *
 * Bytes are those of elements, packed weights and files. Names, attributes and what describes nodes and values take
 * memory in proportion to the file and to "nodes", and are not counted; neither is what other threads of a call need.
 *
 * @param limits what to set, by name; 0 returns a limit to its default. Limits that are not named stay as they are. NULL
 *   returns all of them to their defaults
 * | key               | type | default | meaning
 * |-------------------|------|---------|---------
 * | "load_bytes"      | int  | 2^40    | bytes that qmodel_load or qmodel_load_bytes holds at a time: the file that it
 * |                   |      |         | reads, external data, and constants computed of others
 * | "plan_bytes"      | int  | 2^40    | bytes that making a session or a copy of its model for it, and each plan for
 * |                   |      |         | inputs of new shapes, hold at a time: packed weights, tables, constants in
 * |                   |      |         | float; of a trainer, memory for a batch of new shapes
 * | "run_bytes"       | int  | 0       | bytes that one run of a session, or calibration with one sample, holds at a
 * |                   |      |         | time: memory for what is computed on the way, for all its threads, and
 * |                   |      |         | outputs, but not the inputs. 0: 2^30, 16 for each byte of the model's
 * |                   |      |         | constants and 4096 for each of its inputs
 * | "tensor_elements" | int  | 2^40    | elements of each tensor that is read or made, in models and out of them
 * | "nodes"           | int  | 2^22    | nodes of a file, and each of its initializers, inputs, outputs and described
 * |                   |      |         | values
 * | "loop_iterations" | int  | 1000000 | iterations of all loops of a model in one run, those of loops within loops
 * |                   |      |         | together
 * @return QTN_OK, a common error, or one of these; then no limit has changed:
 * @retval QTN_EINVAL for a negative number, or another name
 * @since 0.1 */
QTN_API qstatus qlib_set_limits(QTN_OPT const qattrs *limits);

/** The limit of that name which holds now.
 *
 * @param out the number; of "run_bytes" 0 where it follows from the model and the inputs
 * @param name a name that qlib_set_limits knows
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for another name
 * @since 0.1 */
QTN_API qstatus qlib_limit(int64_t *out, const char *name);

/** The name of a status: "QTN_OK", "QTN_EINVAL" ... The text is static; "QTN_?" for a number that is no status.
 *
 * @param status what a function returned
 * @return the name, never NULL; "QTN_?" for a number that is no status
 * @since 0.1 */
QTN_API const char *qstatus_name(qstatus status);

/** Why the last call that failed on this thread failed: one line with the values in it, for example "linear: weight has
 * 64 input features, x has 48". Never NULL; "" as long as nothing failed. Calls that succeed leave it as it is, so look
 * at it after a failure only. The text stays until the next failure on the same thread; it is cut at 1023 bytes. Its
 * wording is for people and may change: programs decide by the status.
 *
 * @return the line, never NULL; "" as long as nothing failed
 * @since 0.1 */
QTN_API const char *qerror_message(void);

/** The name of an element type: "float32", "uint8" ... The text is static; "?" for a number that is no element type.
 *
 * @param dtype an element type
 * @return the name, never NULL; "?" for a number that is no element type
 * @since 0.1 */
QTN_API const char *qdtype_name(qdtype dtype);

/* ---------------------------------------------------------------------------------------------------------------------
 * 2. Attributes
 *
 * Named options: attributes of an operator, settings of an observer, a configuration, a session. The function that
 * takes them checks them: an unknown key, or a value of another kind, is QTN_EINVAL with the valid keys in the message.
 * An int is accepted where a float is wanted. Where a function takes `attrs`, NULL means none: the defaults. */

/** An empty set of attributes.
 *
 * @param out the new handle; free it with qattrs_free
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qattrs_create(qattrs **out);

/** Sets an integer; also for switches, as 0 and 1. A key that is already there is replaced, here and below.
 *
 * @param a the set to change
 * @param key name of the option, case-sensitive, not ""
 * @param value the number
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an empty key
 * @since 0.1 */
QTN_API qstatus qattrs_set_int(qattrs *a, const char *key, int64_t value);

/** Sets a real number.
 *
 * @param a the set to change
 * @param key name of the option
 * @param value the number
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an empty key
 * @since 0.1 */
QTN_API qstatus qattrs_set_float(qattrs *a, const char *key, double value);

/** Sets a text.
 *
 * @param a the set to change
 * @param key name of the option
 * @param value the text, copied
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an empty key
 * @since 0.1 */
QTN_API qstatus qattrs_set_string(qattrs *a, const char *key, const char *value);

/** Sets a list of integers, such as the "strides" of a convolution.
 *
 * @param a the set to change
 * @param key name of the option
 * @param values the numbers, copied
 * @param count how many
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an empty key
 * @since 0.1 */
QTN_API qstatus qattrs_set_ints(qattrs *a, const char *key, const int64_t *values, size_t count);

/** Sets a list of real numbers.
 *
 * @param a the set to change
 * @param key name of the option
 * @param values the numbers, copied
 * @param count how many
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an empty key
 * @since 0.1 */
QTN_API qstatus qattrs_set_floats(qattrs *a, const char *key, const double *values, size_t count);

/** How many attributes there are. Never fails.
 *
 * @param a a set
 * @return the number of keys
 * @since 0.1 */
QTN_API size_t qattrs_count(const qattrs *a);

/** The keys, in the order of their bytes.
 *
 * @param a a set
 * @param index which, from 0
 * @return the key, valid until the set is changed or freed; NULL where there are not so many
 * @since 0.1 */
QTN_API const char *qattrs_key(const qattrs *a, size_t index);

/** What kind of value a key has. The text is static.
 *
 * @param a a set
 * @param key name of the option
 * @return "int", "float", "string", "ints", "floats" or "tensor"; NULL where the key is absent
 * @since 0.1 */
QTN_API const char *qattrs_kind(const qattrs *a, const char *key);

/** An integer.
 *
 * @param out the number
 * @param a a set
 * @param key name of the option
 * @param otherwise the number where the key is absent
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a value of another kind
 * @since 0.1 */
QTN_API qstatus qattrs_get_int(int64_t *out, const qattrs *a, const char *key, int64_t otherwise);

/** A real number; an integer is one, too.
 *
 * @param out the number
 * @param a a set
 * @param key name of the option
 * @param otherwise the number where the key is absent
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a value of another kind
 * @since 0.1 */
QTN_API qstatus qattrs_get_float(double *out, const qattrs *a, const char *key, double otherwise);

/** A text.
 *
 * @param out the text, valid until the set is changed or freed
 * @param a a set
 * @param key name of the option
 * @param otherwise what `out` is set to where the key is absent
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a value of another kind
 * @since 0.1 */
QTN_API qstatus qattrs_get_string(const char **out, const qattrs *a, const char *key, QTN_OPT const char *otherwise);

/** A list of integers.
 *
 * @param out the numbers, valid until the set is changed or freed; NULL where the key is absent
 * @param count how many
 * @param a a set
 * @param key name of the option
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a value of another kind
 * @since 0.1 */
QTN_API qstatus qattrs_get_ints(const int64_t **out, size_t *count, const qattrs *a, const char *key);

/** A list of real numbers.
 *
 * @param out the numbers, valid until the set is changed or freed; NULL where the key is absent
 * @param count how many
 * @param a a set
 * @param key name of the option
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a value of another kind
 * @since 0.1 */
QTN_API qstatus qattrs_get_floats(const double **out, size_t *count, const qattrs *a, const char *key);

/** A tensor, which only files can set.
 *
 * @param out a handle on the storage of the attribute; free it with qtensor_free. NULL where the key is absent
 * @param a a set
 * @param key name of the option
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a value of another kind
 * @since 0.1 */
QTN_API qstatus qattrs_get_tensor(qtensor **out, const qattrs *a, const char *key);

/** Frees a set of attributes. Whatever was created with it stays as it is.
 *
 * @param a the handle, or NULL
 * @since 0.1 */
QTN_API void qattrs_free(QTN_OPT qattrs *a);

/* ---------------------------------------------------------------------------------------------------------------------
 * 3. Quantizers
 *
 * A quantizer maps reals to integers of one element type and back: real = (q - zero_point) * scale. It is immutable,
 * and tensors share it. Its numerics, set by the attribute "numerics", are one of the field's conventions, which differ
 * at ties, in how a scale follows from a range, and in the range itself:
 *
 *     "fbgemm"  q = clamp(zero_point + round(x * (1 / scale)))   PyTorch; the default
 *     "qnnpack" the same; "reduce_range" has no effect           PyTorch on QNNPACK
 *     "onnx"    q = clamp(round(x / scale) + zero_point)         ONNX QuantizeLinear, ONNX Runtime
 *     "nvidia"  q = clamp(round(x * (bound / amax)))             NVIDIA's toolkit: symmetric, zero_point 0
 *     "tflite"  q = clamp(round(x / scale) + zero_point)         TensorFlow Lite: ties away from zero
 *
 * All compute in float32, and all except tflite round ties to even. 0.0 always maps to the zero point and back to
 * exactly 0.0; NaN maps to the zero point; what lies outside of the range saturates.
 *
 * Element types: QTN_UINT8, QTN_INT8, QTN_UINT16, QTN_INT16, QTN_INT32, the packed QTN_UINT4, QTN_INT4, QTN_UINT2,
 * QTN_INT2, and QTN_FLOAT8E4M3FN, QTN_FLOAT8E5M2, QTN_FLOAT8E4M3FNUZ, QTN_FLOAT8E5M2FNUZ and QTN_FLOAT4E2M1, whose
 * values are x / scale rounded to the nearest such float and whose zero point is 0.
 *
 * Schemes: one scale for the tensor (QTN_PER_TENSOR_AFFINE, QTN_PER_TENSOR_SYMMETRIC); one for each index along `axis`
 * (QTN_PER_CHANNEL_AFFINE, QTN_PER_CHANNEL_SYMMETRIC); or, as in ONNX since opset 21, one for each run of "block_size"
 * elements along `axis` (QTN_PER_BLOCK_AFFINE, QTN_PER_BLOCK_SYMMETRIC): scales then are a grid of the tensor's shape,
 * in row-major order, with ceil(dim / block_size) in place of the dimension of the axis.
 *
 * QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS is PyTorch's per_channel_affine_float_qparams, for the weights of embeddings:
 * per channel, with zero points that are floats, of QTN_UINT8, QTN_UINT4 and QTN_UINT2 under fbgemm and qnnpack. The
 * smallest value of a channel is then exact, and 0.0 is not: q = clamp(round(x * (1 / scale) + zero_point)), real =
 * (q - zero_point) * scale. Such tensors are for storage and look-up: operators (qop_run with "Gather" is an embedding)
 * compute with their dequantized values, an index of the channels' axis can be sliced but not selected, and models and
 * fake quantization do not take them. */

/** A quantizer from known parameters.
 *
 * @param out the new handle; free it with qquantizer_free
 * @param dtype element type of the integers
 * @param scheme which elements share a scale
 * @param axis the dimension that channels or blocks run along, -8 to 7, negative counted from the last; ignored by
 *   per-tensor schemes
 * @param scales `count` scales, each positive and finite
 * @param zero_points `count` integers in the range of the quantizer; NULL: 0, or the middle of the range (128 for
 *   uint8, 7 for 0 to 15, 8 under onnx numerics) for symmetric schemes of unsigned types, except under nvidia numerics
 * @param count 1 for per-tensor schemes, the number of channels for per-channel ones, of blocks for per-block ones
 * @param attrs numerics, blocks and range
 * | key                 | type   | default            | meaning
 * |---------------------|--------|--------------------|---------
 * | "numerics"          | string | "fbgemm"           | a name of the list at the head of this section
 * | "block_size"        | int    | 0                  | of per-block schemes, which need it: elements in a block, 1 or
 * |                     |        |                    | more
 * | "quant_min"         | int    | lowest of `dtype`  | together with "quant_max": the integers that values saturate to
 * |                     |        |                    | (0 and 15 make a uint8 grid of 4 bits)
 * | "quant_max"         | int    | highest of `dtype` | see "quant_min"
 * | "float_zero_points" | floats | none               | of QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS, whose `zero_points`
 * |                     |        |                    | are NULL: `count` finite zero points
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a scale, zero point, axis, count or range outside of these bounds
 * @retval QTN_EDTYPE for a dtype that holds no quantized values
 * @retval QTN_EUNSUPPORTED for a zero point other than 0 with nvidia numerics
 * @since 0.1 */
QTN_API qstatus qquantizer_create(qquantizer **out, qdtype dtype, qscheme scheme, int32_t axis, const double *scales,
                                  QTN_OPT const int64_t *zero_points, size_t count, QTN_OPT const qattrs *attrs);

/** A quantizer from observed ranges. Each range is first extended to contain 0. With lo and hi the bounds of the range
 * of integers, in float32 for fbgemm, qnnpack and nvidia, in float64 for onnx and tflite:
 *
 *     affine     scale = (max - min) / (hi - lo)           zero_point = lo - round(min / scale), clamped to the range
 *     symmetric  scale = max(-min, max) / ((hi - lo) / 2)  zero_point = 0, or the middle of an unsigned range
 *     float      scale = (max - min) / (hi - lo), 1 where that is not above "eps"; zero_point = -min / scale, both of
 *                the range as it is
 *
 * fbgemm and qnnpack keep scales above "eps". onnx gives a range that vanishes the scale 1. nvidia has symmetric
 * schemes only: scale = amax / hi, kept so that 1 / scale is exactly the float32 hi / amax; signed types stop at -hi,
 * unsigned ones refuse a negative min; an amax up to 2^-24 gives the scale 1. tflite takes amax / hi for symmetric
 * schemes, which stop at -hi, and for affine ones the zero point from the end of the range with the smaller error. For
 * a float type the scale is amax divided by its largest value (448, 57344, 240, 57344 or 6).
 *
 * @param out the new handle; free it with qquantizer_free
 * @param dtype element type of the integers
 * @param scheme which elements share a scale
 * @param axis as for qquantizer_create
 * @param mins `count` lower bounds
 * @param maxs `count` upper bounds, none below its lower bound
 * @param count as for qquantizer_create
 * @param attrs numerics, blocks, range, and how scales follow
 * | key            | type   | default            | meaning
 * |----------------|--------|--------------------|---------
 * | "numerics"     | string | "fbgemm"           | a name of the list at the head of this section
 * | "block_size"   | int    | 0                  | of per-block schemes, which need it: elements in a block, 1 or more
 * | "quant_min"    | int    | lowest of `dtype`  | together with "quant_max": the integers that values saturate to
 * | "quant_max"    | int    | highest of `dtype` | see "quant_min"
 * | "reduce_range" | int    | 0                  | 1 spreads over one bit less ([0, 127] for uint8, [-64, 63] for
 * |                |        |                    | int8), under fbgemm and onnx; onnx has [-64, 64] for symmetric
 * |                |        |                    | int8, and fbgemm refuses symmetric uint8 (QTN_EUNSUPPORTED)
 * | "narrow_range" | int    | 0                  | 1 makes symmetric signed types stop at -hi ([-127, 127])
 * | "eps"          | float  | 2^-23              | the smallest scale, under fbgemm and qnnpack
 * | "scale_amax"   | float  | 1                  | of nvidia: the amax is so many times that of the range, as in
 * |                |        |                    | NVIDIA's QuantDescriptor
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a bound that is not finite, min > max, or another argument out of its range
 * @retval QTN_EDTYPE for a dtype that holds no quantized values
 * @retval QTN_EUNSUPPORTED for a scheme that the numerics do not have
 * @since 0.1 */
QTN_API qstatus qquantizer_choose(qquantizer **out, qdtype dtype, qscheme scheme, int32_t axis, const double *mins,
                                  const double *maxs, size_t count, QTN_OPT const qattrs *attrs);

/** A quantizer for a tensor from its own values, as dynamic quantization chooses one for each tensor: from the
 * smallest and the largest value, extended to contain 0, over the integers lo to hi of `dtype`. A tensor without
 * elements has the range [0, 0].
 *
 *     fbgemm    scale = (max - min) / (hi - lo) in float64, 0.1 where that is 0 or has no inverse in float32; a scale
 *     qnnpack   below 6.1e-5 is raised to that, min and max by the same factor. zero_point = lo - min / scale where
 *               abs(lo) - abs(min / scale) < abs(hi) - abs(max / scale), else hi - max / scale, in float64, rounded
 *               and clamped: torch.quantize_per_tensor_dynamic
 *     onnx      scale = (max - min) / (hi - lo) in float32, 1 where that is below 2^-126; zero_point = lo + round(
 *               -min / scale), clamped: ONNX's DynamicQuantizeLinear, of int8 the same grid 128 further down
 *     others    those of qquantizer_choose for this range: nvidia symmetric, from the largest magnitude; tflite affine
 *
 * qquantizer_choose knows no smallest scale of 6.1e-5 and no 0.1: there a range is what an observer has seen.
 *
 * @param out the new handle, per tensor, which saturates to the whole of `dtype`; free it with qquantizer_free
 * @param dtype QTN_UINT8 or QTN_INT8
 * @param x float32, not quantized, any shape and strides
 * @param attrs numerics and range
 * | key            | type   | default  | meaning
 * |----------------|--------|----------|---------
 * | "numerics"     | string | "fbgemm" | a name of the list at the head of this section
 * | "reduce_range" | int    | 0        | 1 spreads over one bit less ([0, 127] of uint8, [-64, 63] of int8) under
 * |                |        |          | fbgemm and onnx, and has no effect under the others
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an `x` that holds NaN or infinity, for unknown numerics, and for a negative value of `x` where
 *   numerics are nvidia and `dtype` is QTN_UINT8
 * @retval QTN_EDTYPE for another dtype or another `x`
 * @since 0.1 */
QTN_API qstatus qquantizer_choose_dynamic(qquantizer **out, qdtype dtype, const qtensor *x,
                                          QTN_OPT const qattrs *attrs);

/** The element type of the integers.
 *
 * @param q a quantizer
 * @return the element type; 0 where `q` is NULL
 * @since 0.1 */
QTN_API qdtype qquantizer_dtype(const qquantizer *q);

/** Which elements share a scale.
 *
 * @param q a quantizer
 * @return the scheme; 0 where `q` is NULL
 * @since 0.1 */
QTN_API qscheme qquantizer_scheme(const qquantizer *q);

/** The dimension that channels or blocks run along; 0 for per-tensor schemes. That of a tensor's quantizer is never
 * negative.
 *
 * @param q a quantizer
 * @return the axis; 0 for per-tensor schemes
 * @since 0.1 */
QTN_API int32_t qquantizer_axis(const qquantizer *q);

/** How many scales and zero points there are: 1 for per-tensor schemes.
 *
 * @param q a quantizer
 * @return the number of scales; 0 where `q` is NULL
 * @since 0.1 */
QTN_API size_t qquantizer_count(const qquantizer *q);

/** The qquantizer_count(q) scales. They live as long as `q`.
 *
 * @param q a quantizer
 * @return the scales; NULL where `q` is NULL
 * @since 0.1 */
QTN_API const double *qquantizer_scales(const qquantizer *q);

/** The qquantizer_count(q) zero points, 0 where they are floats. They live as long as `q`.
 *
 * @param q a quantizer
 * @return the zero points; NULL where `q` is NULL
 * @since 0.1 */
QTN_API const int64_t *qquantizer_zero_points(const qquantizer *q);

/** The qquantizer_count(q) zero points of QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS. They live as long as `q`. NULL of every
 * other scheme.
 *
 * @param q a quantizer
 * @return the zero points; NULL for every other scheme
 * @since 0.1 */
QTN_API const double *qquantizer_float_zero_points(const qquantizer *q);

/** How many elements along the axis share a scale; 0 where the scheme has no blocks.
 *
 * @param q a quantizer
 * @return the number of elements in a block; 0 where the scheme has no blocks
 * @since 0.1 */
QTN_API int64_t qquantizer_block_size(const qquantizer *q);

/** The lowest integer that values saturate to; 0 for float types.
 *
 * @param q a quantizer
 * @return the lowest integer; 0 for float types
 * @since 0.1 */
QTN_API int64_t qquantizer_quant_min(const qquantizer *q);

/** The highest integer that values saturate to; 0 for float types.
 *
 * @param q a quantizer
 * @return the highest integer; 0 for float types
 * @since 0.1 */
QTN_API int64_t qquantizer_quant_max(const qquantizer *q);

/** The name of the numerics: "fbgemm" ... The text is static; "" for NULL.
 *
 * @param q a quantizer
 * @return the name; "" where `q` is NULL
 * @since 0.1 */
QTN_API const char *qquantizer_numerics(const qquantizer *q);

/** Frees a quantizer. Tensors that hold it keep it.
 *
 * @param q the handle, or NULL. Not one that qtensor_quantizer() returned: that belongs to its tensor.
 * @since 0.1 */
QTN_API void qquantizer_free(QTN_OPT qquantizer *q);

/* ---------------------------------------------------------------------------------------------------------------------
 * 4. Tensors
 *
 * An element type, a shape of at most 8 dimensions, strides, storage, and for a quantized tensor a quantizer. Storage
 * is shared: qtensor_share, select, slice and permute give new handles on the same elements, and it is freed with the
 * last.
 *
 * Every element type of qdtype is stored, bool as one byte. Floats below 32 bits are held, copied and converted
 * (operator Cast); packed types share bytes as in ONNX: the first of two int4, or of four int2, is in the lowest bits,
 * and only the last byte of a tensor may be part empty. Computation is in float32, float64 and in integers. */

/** A tensor with storage of its own, row-major.
 *
 * With a quantizer and data it assembles a quantized tensor from integers; with a quantizer and no data it makes an
 * empty one, of integers 0.
 *
 * @param out the new handle; free it with qtensor_free
 * @param dtype element type
 * @param shape `rank` dimensions, each 0 or more
 * @param rank at most 8; 0 makes a scalar
 * @param quantizer NULL, or one with the same dtype; per channel, with as many channels as the shape has along its axis
 * @param data elements in row-major order, copied; NULL: zero-filled
 * @param nbytes size of `data`, exactly that of the elements; not looked at where `data` is NULL
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE for a bad shape or a quantizer that does not fit it
 * @retval QTN_EINVAL for another nbytes
 * @retval QTN_EDTYPE for a quantizer of another dtype
 * @retval QTN_EUNSUPPORTED for a dtype that is not stored
 * @since 0.1 */
QTN_API qstatus qtensor_create(qtensor **out, qdtype dtype, const int64_t *shape, size_t rank,
                               QTN_OPT const qquantizer *quantizer, QTN_OPT const void *data, size_t nbytes);

/** A tensor over the caller's memory, without a copy. The memory must stay valid until `deleter` is called, which
 * happens exactly once: when the last handle that shares the storage is freed, on the thread that frees it. Where this
 * function fails, the deleter is not called and the memory stays the caller's.
 *
 * @param out the new handle; free it with qtensor_free
 * @param dtype element type
 * @param shape `rank` dimensions, each 0 or more
 * @param rank at most 8; 0 makes a scalar
 * @param quantizer NULL, or one that fits dtype and shape
 * @param data elements in row-major order, aligned for their type
 * @param nbytes size of `data`, exactly that of the elements
 * @param deleter called with `data` and `ctx`; NULL: the memory outlives the tensor and all its views
 * @param ctx handed to the deleter, not looked at
 * @return QTN_OK, a common error, one of qtensor_create, or:
 * @retval QTN_EINVAL for data that is not aligned
 * @since 0.1 */
QTN_API qstatus qtensor_wrap(qtensor **out, qdtype dtype, const int64_t *shape, size_t rank,
                             QTN_OPT const qquantizer *quantizer, void *data, size_t nbytes,
                             QTN_OPT qtensor_deleter_cb deleter, QTN_OPT void *ctx);

/** A second handle on the same storage, shape and quantizer.
 *
 * @param out the new handle; free it with qtensor_free
 * @param t the tensor to share
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qtensor_share(qtensor **out, const qtensor *t);

/** The element type; that of the integers for a quantized tensor.
 *
 * @param t a tensor
 * @return the element type; 0 where `t` is NULL
 * @since 0.1 */
QTN_API qdtype qtensor_dtype(const qtensor *t);

/** The number of dimensions, 0 for a scalar.
 *
 * @param t a tensor
 * @return the number of dimensions; 0 where `t` is NULL
 * @since 0.1 */
QTN_API size_t qtensor_rank(const qtensor *t);

/** The qtensor_rank(t) dimensions. They live as long as `t`.
 *
 * @param t a tensor
 * @return the dimensions; NULL where `t` is NULL
 * @since 0.1 */
QTN_API const int64_t *qtensor_shape(const qtensor *t);

/** The qtensor_rank(t) distances between neighbours along each dimension, in elements. They live as long as `t`.
 *
 * @param t a tensor
 * @return the strides; NULL where `t` is NULL
 * @since 0.1 */
QTN_API const int64_t *qtensor_strides(const qtensor *t);

/** The number of elements: the product of the dimensions.
 *
 * @param t a tensor
 * @return the number of elements; 0 where `t` is NULL
 * @since 0.1 */
QTN_API int64_t qtensor_numel(const qtensor *t);

/** Bytes of the elements side by side; of a packed type rounded up to a whole byte. A view counts its own elements, not
 * what lies between.
 *
 * @param t a tensor
 * @return the number of bytes; 0 where `t` is NULL
 * @since 0.1 */
QTN_API size_t qtensor_nbytes(const qtensor *t);

/** The quantizer; NULL: the tensor is not quantized. It lives as long as `t`, or until qtensor_copy gives `t` another
 * one. Do not free it.
 *
 * @param t a tensor
 * @return the quantizer; NULL where the tensor is not quantized
 * @since 0.1 */
QTN_API const qquantizer *qtensor_quantizer(const qtensor *t);

/** The first element. Walk from there by the strides, or ask qtensor_contiguous for a row-major tensor. Owned storage
 * is aligned to 64 bytes. Lives as long as the storage. A view of a packed type may begin inside the byte: ask
 * qtensor_contiguous for one that begins at its lowest bits.
 *
 * @param t a tensor
 * @return the address of the first element; NULL where `t` is NULL
 * @since 0.1 */
QTN_API const void *qtensor_data(const qtensor *t);

/** The first element, to write. Every handle on the same storage sees what is written.
 *
 * @param out the address; lives as long as the storage
 * @param t a tensor; neither it nor another handle on its storage may be in use by another thread
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qtensor_data_mut(void **out, qtensor *t);

/** Quantizes floats, whatever the quantizer's scheme.
 *
 * @param out a new row-major tensor of the quantizer's dtype that holds the quantizer
 * @param x float32, not quantized, any strides
 * @param quantizer the mapping; per channel, with as many channels as `x` has along its axis
 * @return QTN_OK, a common error, or:
 * @retval QTN_EDTYPE where `x` is not float32
 * @retval QTN_ESHAPE where the channels do not fit
 * @since 0.1 */
QTN_API qstatus qtensor_quantize(qtensor **out, const qtensor *x, const qquantizer *quantizer);

/** The reals that a quantized tensor stands for, (q - zero_point) * scale in float32.
 *
 * @param out a new row-major float32 tensor
 * @param x a quantized tensor, any strides
 * @return QTN_OK, a common error, or:
 * @retval QTN_EDTYPE where `x` is not quantized
 * @since 0.1 */
QTN_API qstatus qtensor_dequantize(qtensor **out, const qtensor *x);

/** The elements at one index of a dimension, as a view without that dimension: select(t, 0, 2) is t[2]. A per-channel
 * quantizer is kept with the channel chosen, or with its axis moved.
 *
 * @param out the view
 * @param t a tensor of rank 1 or more
 * @param axis the dimension; negative counts from the last
 * @param index the index; negative counts from the end
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an axis or index out of range
 * @since 0.1 */
QTN_API qstatus qtensor_select(qtensor **out, const qtensor *t, int32_t axis, int64_t index);

/** Part of a dimension, as a view: t[start:stop:step], with the bounds clamped to the dimension as in Python.
 *
 * @param out the view
 * @param t a tensor of rank 1 or more
 * @param axis the dimension; negative counts from the last
 * @param start the first index; negative counts from the end
 * @param stop one past the last index; negative counts from the end; INT64_MAX: to the end
 * @param step distance between indices, 1 or more
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an axis out of range, a step below 1, or a per-channel tensor left without channels
 * @since 0.1 */
QTN_API qstatus qtensor_slice(qtensor **out, const qtensor *t, int32_t axis, int64_t start, int64_t stop, int64_t step);

/** The dimensions in another order, as a view. The axis of a per-channel quantizer follows.
 *
 * @param out the view; its dimension i is dimension axes[i] of `t`
 * @param t a tensor
 * @param axes each dimension of `t` once; negative counts from the last
 * @param count the rank of `t`
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL where `axes` is no permutation
 * @since 0.1 */
QTN_API qstatus qtensor_permute(qtensor **out, const qtensor *t, const int32_t *axes, size_t count);

/** The same values in row-major order: a second handle where they are in that order already, else a copy.
 *
 * @param out the row-major tensor
 * @param t a tensor
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qtensor_contiguous(qtensor **out, const qtensor *t);

/** The elements under another shape of as many, in row-major order: a view where the strides allow it, else a copy. The
 * axis that channels or blocks run along must survive, with the same number of elements before it.
 *
 * @param out the tensor
 * @param t a tensor
 * @param shape `rank` dimensions; one of them may be -1 and is then what the others leave for it
 * @param rank at most 8
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE for a shape of another number of elements, or one that loses the axis of the quantizer
 * @since 0.1 */
QTN_API qstatus qtensor_reshape(qtensor **out, const qtensor *t, const int64_t *shape, size_t rank);

/** The integers of a quantized tensor, as a view without the quantizer.
 *
 * @param out the view
 * @param t a quantized tensor
 * @return QTN_OK, a common error, or:
 * @retval QTN_EDTYPE where `t` is not quantized
 * @since 0.1 */
QTN_API qstatus qtensor_int_repr(qtensor **out, const qtensor *t);

/** Whether two tensors have the same element type, shape, quantizer, and elements; NaN equals nothing. Strides may
 * differ.
 *
 * @param out 1 where they are equal, else 0
 * @param a a tensor
 * @param b a tensor
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qtensor_equal(int32_t *out, const qtensor *a, const qtensor *b);

/** Copies values into existing storage. A source that is not quantized is broadcast to the shape of `dst` as in NumPy;
 * else shapes must be equal. What happens depends on both sides:
 *
 *     quantized to quantized   dtypes and schemes must be equal; integers are copied and `dst` takes src's quantizer
 *     float32 to quantized     values are quantized by dst's quantizer
 *     plain to plain           dtypes must be equal
 *     quantized to plain       QTN_EDTYPE: dequantize first
 *
 * So `q[0] = 3.5` is select(&v, q, 0, 0), then copy(v, scalar of 3.5). The quantizer belongs to the handle: other
 * handles on the same storage keep theirs.
 *
 * @param dst the tensor to write
 * @param src the tensor to read; may share storage with `dst`
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE where shapes do not fit
 * @retval QTN_EDTYPE where types or schemes do not go together
 * @since 0.1 */
QTN_API qstatus qtensor_copy(qtensor *dst, const qtensor *src);

/** The value of a tensor of one element, dequantized where it is quantized.
 *
 * @param out the value
 * @param t a tensor of exactly one element, any rank
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE for another number of elements
 * @since 0.1 */
QTN_API qstatus qtensor_item(double *out, const qtensor *t);

/** The tensor as text: values to 4 digits, dequantized, then size, dtype, scheme and parameters where quantized. For
 * example `tensor([-1.0000, 11.7000], size=(2,), dtype=qint8,\n       quantization_scheme=per_tensor_affine, scale=0.1,
 * zero_point=10)`. More than 1000 elements are shortened to the first and last three of each dimension.
 *
 * Like snprintf: writes at most `cap` bytes including the NUL, and always ends with a NUL where `cap` is not 0. Text
 * that does not fit is cut and no error: compare `*out_len` with `cap`.
 *
 * @param buf where the text goes; may be NULL where `cap` is 0
 * @param cap bytes at `buf`
 * @param out_len length of the whole text in bytes, without the NUL
 * @param t a tensor
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qtensor_describe(QTN_OPT char *buf, size_t cap, size_t *out_len, const qtensor *t);

/** Frees a handle. Storage goes with the last handle that shares it.
 *
 * @param t the handle, or NULL
 * @since 0.1 */
QTN_API void qtensor_free(QTN_OPT qtensor *t);

/* ---------------------------------------------------------------------------------------------------------------------
 * 5. Observers
 *
 * An observer is shown tensors one after another, keeps statistics of constant size, and chooses a quantizer from them.
 * Models have their own at every place that needs one (section 7); these here are for tensors and for engines outside.
 * Calibration can be spread: save in each process, load and merge in one. */

/** An observer that has seen nothing.
 *
 * @param out the new handle; free it with qobserver_free
 * @param kind "minmax": smallest and largest value ever; "max": largest magnitude ever; "moving_average": extremes of
 *   each tensor, averaged over time; "percentile" (ONNX Runtime's) and "nvidia_percentile": the range that holds so
 *   many percent of the values; "histogram" (PyTorch's), "mse" and "nvidia_mse": the range, not larger than the one
 *   seen, of least squared error; "entropy" (ONNX Runtime's) and "nvidia_entropy": of least divergence; "fixed": a grid
 *   that is given, whatever is seen. minmax, max and moving_average also work per channel and per block
 * @param attrs the grid, and what the kind needs
 * | key                  | type   | default             | meaning
 * |----------------------|--------|---------------------|---------
 * | "dtype"              | string | "uint8"             | "uint8", "int8", "uint16", "int16", "int32", "uint4", "int4",
 * |                      |        |                     | "uint2" or "int2"
 * | "scheme"             | string | "per_tensor_affine" | a qscheme, in lower case and without QTN_
 * | "axis"               | int    | 0                   | the dimension that channels or blocks run along, not negative
 * | "averaging_constant" | float  | 0.01                | of moving_average: weight of the newest tensor
 * | "bins"               | int    | 2048                | of kinds that count, from 2 to 65536; of entropy 128 unless
 * |                      |        |                     | given, and even. At most 16384 of histogram, 4096 of
 * |                      |        |                     | nvidia_entropy and nvidia_mse, 2048 of entropy, whose time
 * |                      |        |                     | grows with the square
 * | "percentile"         | float  | 99.999              | of percentile and nvidia_percentile (of this 99.99 unless
 * |                      |        |                     | given)
 * | "absolute"           | int    | 1                   | of percentile: 1 counts magnitudes; 0 cuts the same share off
 * |                      |        |                     | at either end
 * | "scale"              | float  | none                | of fixed, together with "zero_point": the grid
 * | "zero_point"         | int    | none                | see "scale"
 * | "min"                | float  | none                | of fixed, together with "max": the range that the grid
 * |                      |        |                     | follows from
 * | "max"                | float  | none                | see "min"
 * | "descriptor"         | string | none                | one that NVIDIA's toolkit defines, which says "numerics",
 * |                      |        |                     | "dtype", "scheme" and "axis" where these are not given:
 * |                      |        |                     | "QUANT_DESC_8BIT_PER_TENSOR",
 * |                      |        |                     | "QUANT_DESC_UNSIGNED_8BIT_PER_TENSOR",
 * |                      |        |                     | "QUANT_DESC_8BIT_CONV2D_WEIGHT_PER_CHANNEL" (and CONV1D,
 * |                      |        |                     | CONV3D), "QUANT_DESC_8BIT_LINEAR_WEIGHT_PER_ROW",
 * |                      |        |                     | "QUANT_DESC_8BIT_CONVTRANSPOSE2D_WEIGHT_PER_CHANNEL" (and 1D,
 * |                      |        |                     | 3D: axis 1)
 * | qquantizer_choose    |        |                     | its options, too
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an unknown kind, attribute or value (the message lists the valid ones)
 * @retval QTN_EUNSUPPORTED for a scheme that the kind does not offer
 * @since 0.1 */
QTN_API qstatus qobserver_create(qobserver **out, const char *kind, QTN_OPT const qattrs *attrs);

/** Takes a tensor into account. Empty tensors are ignored.
 *
 * @param o the observer
 * @param x float32; per channel, each time with the same number of channels
 * @return QTN_OK, a common error, or one of these; then the observer is unchanged:
 * @retval QTN_EDTYPE where `x` is not float32
 * @retval QTN_ESHAPE where the channels of `x` do not fit
 * @retval QTN_EINVAL where `x` holds NaN or infinity
 * @since 0.1 */
QTN_API qstatus qobserver_observe(qobserver *o, const qtensor *x);

/** Adds what another observer has seen, as if `o` had seen it after its own data.
 *
 * @param o the observer to change
 * @param other one of the same kind and settings; unchanged
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL where kind, settings or channels differ
 * @since 0.1 */
QTN_API qstatus qobserver_merge(qobserver *o, const qobserver *other);

/** The quantizer that follows from what was seen so far. The observer can go on.
 *
 * @param out the new handle; free it with qquantizer_free
 * @param o an observer that has seen a value
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE where the observer has seen no value
 * @since 0.1 */
QTN_API qstatus qobserver_quantizer(qquantizer **out, const qobserver *o);

/** Kind, settings and statistics as bytes, for qobserver_load in this or a later version, on any machine.
 *
 * @param out the bytes; free them with qblob_free
 * @param o the observer
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qobserver_save(qblob **out, const qobserver *o);

/** An observer from bytes of qobserver_save.
 *
 * @param out the new handle; free it with qobserver_free
 * @param data the bytes
 * @param nbytes how many
 * @return QTN_OK, a common error, or:
 * @retval QTN_EFORMAT for bytes that are not a whole observer
 * @since 0.1 */
QTN_API qstatus qobserver_load(qobserver **out, const void *data, size_t nbytes);

/** Writes what qobserver_save gives to a file, under a temporary name first as qmodel_save.
 *
 * @param o the observer
 * @param path the file; replaced where it exists
 * @return QTN_OK, a common error, or:
 * @retval QTN_EIO where the file cannot be written
 * @since 0.1 */
QTN_API qstatus qobserver_save_file(const qobserver *o, const char *path);

/** An observer from a file of qobserver_save_file.
 *
 * @param out the new handle; free it with qobserver_free
 * @param path the file
 * @return QTN_OK, a common error, or:
 * @retval QTN_EIO where the file cannot be read
 * @retval QTN_EFORMAT where it holds no whole observer
 * @since 0.1 */
QTN_API qstatus qobserver_load_file(qobserver **out, const char *path);

/** Frees an observer.
 *
 * @param o the handle, or NULL
 * @since 0.1 */
QTN_API void qobserver_free(QTN_OPT qobserver *o);

/* ---------------------------------------------------------------------------------------------------------------------
 * 6. Operators
 *
 * Single operators on tensors, at once. They read operands of any strides and give new row-major tensors.
 *
 * Quantized and float operands may be mixed, and one rule says what comes out:
 *
 *     the value    that of the operator on real numbers; a quantized operand stands for its dequantized values. Conv,
 *                  ConvTranspose, Gemm, MatMul, Add, Sub, Mul and the averages of quantized operands are computed in
 *                  exact integers, with one rounding
 *     the result   quantized by `out_quantizer` where the function has one and it is not NULL; else, for operators that
 *                  move or choose elements (Reshape, Transpose, MaxPool, Concat ...) and Relu, on the grid of the
 *                  operands, where all that are moved share one per-tensor grid and what Pad or Resize inserts lies
 *                  on it (0 always does); else float32 */

/** Runs any operator by its ONNX name, with inputs and attributes as of ONNX opset 21: "Conv", "Add", "Softmax" ...
 *
 * @param outputs receives `output_count` new tensors
 * @param output_count how many outputs are wanted, counted from the first; at least 1
 * @param op name of an operator of ONNX's default domain, or of ONNX Runtime's ("QLinearAdd" ...)
 * @param inputs `input_count` tensors; NULL where ONNX allows an absent one
 * @param input_count how many; absent ones at the end may be left out
 * @param attrs the operator's attributes, by the names that ONNX gives them. DynamicQuantizeLinear and
 *   DynamicQuantizeMatMul have more
 * | key        | type   | default | meaning
 * |------------|--------|---------|---------
 * | "numerics" | string | "onnx"  | "onnx", "fbgemm" or "qnnpack", as for qquantizer_choose_dynamic; "fbgemm" is with
 * |            |        |         | reduce_range
 * @return QTN_OK, a common error, or one of these; then no output is left behind:
 * @retval QTN_EUNSUPPORTED for an operator that this version does not have
 * @retval QTN_EINVAL for a count or attribute that the operator does not have
 * @retval QTN_ESHAPE where the shapes of operands do not fit
 * @retval QTN_EDTYPE where the types of operands do not fit
 * @since 0.1 */
QTN_API qstatus qop_run(qtensor **outputs, size_t output_count, const char *op, const qtensor *const *inputs,
                        size_t input_count, QTN_OPT const qattrs *attrs);

/** max(x, 0). A quantized `x` keeps its per-tensor quantizer: max(q, zero_point).
 *
 * @param out the result, of the shape of `x`
 * @param x any type of number, or quantized
 * @return QTN_OK, a common error, or:
 * @retval QTN_EDTYPE for another element type
 * @since 0.1 */
QTN_API qstatus qop_relu(qtensor **out, const qtensor *x);

/** What quantizing and dequantizing makes of `x`, in float32: fake quantization, by which a network in training learns
 * to live with a grid. The bits are those of qtensor_quantize followed by qtensor_dequantize, under every numerics.
 *
 * @param out the result, of the shape of `x`
 * @param x float32, not quantized; of any strides
 * @param quantizer per tensor or per channel, for integers of up to 16 bits; its type may hold more ("quant_min" and
 *   "quant_max" of qquantizer_create)
 * @return QTN_OK, a common error, or:
 * @retval QTN_EDTYPE unless `x` is float32
 * @retval QTN_ESHAPE where the scales do not fit it
 * @retval QTN_EUNSUPPORTED for blocks, float8 and larger integers
 * @since 0.1 */
QTN_API qstatus qop_fake_quantize(qtensor **out, const qtensor *x, const qquantizer *quantizer);

/** The gradient of qop_fake_quantize by the straight-through estimator: `dy` where `x` before saturation is an integer
 * from quant_min to quant_max, else 0. Under "nvidia" numerics also 0 where abs(x) is more than amax, the largest x
 * that the scale was chosen for. Where `x` is NaN it is 0.
 *
 * @param out the gradient for `x`, of its shape
 * @param dy float32, the gradient for the result of qop_fake_quantize
 * @param x what that was given
 * @param quantizer what that was given
 * @return QTN_OK, a common error, one of qop_fake_quantize, or:
 * @retval QTN_EDTYPE unless `dy` is float32
 * @retval QTN_ESHAPE unless `dy` has the shape of `x`
 * @since 0.1 */
QTN_API qstatus qop_fake_quantize_backward(qtensor **out, const qtensor *dy, const qtensor *x,
                                           const qquantizer *quantizer);

/** a + b, broadcast as in NumPy.
 *
 * @param out the result
 * @param a float32 or another number, or quantized
 * @param b of the same type as `a`, or quantized
 * @param out_quantizer per tensor; NULL: the result is float32, or the type of plain operands
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE where shapes do not broadcast
 * @retval QTN_EDTYPE where types do not fit
 * @since 0.1 */
QTN_API qstatus qop_add(qtensor **out, const qtensor *a, const qtensor *b, QTN_OPT const qquantizer *out_quantizer);

/** The matrix product of NumPy's matmul: over the last dimension of `a` and the last but one of `b`, batched over
 * those before.
 *
 * @param out the result
 * @param a [..., M, K] or [K]; float32, or quantized per tensor
 * @param b [..., K, N] or [K]; float32, or quantized per tensor or per channel along N
 * @param out_quantizer per tensor; NULL: the result is float32
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE where shapes do not fit
 * @retval QTN_EDTYPE where types do not fit
 * @since 0.1 */
QTN_API qstatus qop_matmul(qtensor **out, const qtensor *a, const qtensor *b, QTN_OPT const qquantizer *out_quantizer);

/** Tensors one after the other along a dimension.
 *
 * @param out the result
 * @param inputs `input_count` tensors of one rank and type, of equal dimensions except that of `axis`
 * @param input_count 1 or more
 * @param axis the dimension; negative counts from the last
 * @param out_quantizer per tensor; NULL: the grid that all inputs share, or float32 where they do not
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE where shapes do not fit
 * @retval QTN_EDTYPE where types do not fit
 * @retval QTN_EINVAL for an axis out of range, or no inputs
 * @since 0.1 */
QTN_API qstatus qop_cat(qtensor **out, const qtensor *const *inputs, size_t input_count, int32_t axis,
                        QTN_OPT const qquantizer *out_quantizer);

/** The largest element of each window, as ONNX MaxPool. A quantized `x` keeps its per-tensor quantizer.
 *
 * @param out [N, C, H_out, W_out]
 * @param x [N, C, H, W], any type of number, or quantized
 * @param attrs those of MaxPool
 * | key             | type   | default       | meaning
 * |-----------------|--------|---------------|---------
 * | "kernel_shape"  | ints   | must be given | height and width of the window
 * | "strides"       | ints   | 1s            | steps of the window
 * | "pads"          | ints   | 0s            | top, left, bottom, right
 * | "dilations"     | ints   | 1s            | distances between the elements of a window
 * | "ceil_mode"     | int    | 0             | 1 rounds the size of the result up
 * | "auto_pad"      | string | "NOTSET"      | "SAME_UPPER", "SAME_LOWER" or "VALID" instead of "pads"
 * | "storage_order" | int    | 0             | 0 or 1: the order of indices, which this function does not return
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE for another rank or a window that does not fit
 * @retval QTN_EDTYPE for another element type
 * @retval QTN_EINVAL for attributes that MaxPool does not have, or without "kernel_shape"
 * @since 0.1 */
QTN_API qstatus qop_max_pool2d(qtensor **out, const qtensor *x, QTN_OPT const qattrs *attrs);

/** The mean of each window, as ONNX AveragePool. Quantized: exact sums and one rounding.
 *
 * @param out [N, C, H_out, W_out]: quantized by `out_quantizer`, or float32 where that is NULL
 * @param x [N, C, H, W], float32, or quantized
 * @param out_quantizer per tensor; NULL: the result is float32
 * @param attrs those of AveragePool
 * | key                 | type   | default       | meaning
 * |---------------------|--------|---------------|---------
 * | "kernel_shape"      | ints   | must be given | height and width of the window
 * | "strides"           | ints   | 1s            | steps of the window
 * | "pads"              | ints   | 0s            | top, left, bottom, right
 * | "dilations"         | ints   | 1s            | distances between the elements of a window
 * | "ceil_mode"         | int    | 0             | 1 rounds the size of the result up
 * | "auto_pad"          | string | "NOTSET"      | "SAME_UPPER", "SAME_LOWER" or "VALID" instead of "pads"
 * | "count_include_pad" | int    | 0             | 1 counts the padding as elements
 * @return QTN_OK, a common error, or one of qop_max_pool2d
 * @since 0.1 */
QTN_API qstatus qop_avg_pool2d(qtensor **out, const qtensor *x, QTN_OPT const qquantizer *out_quantizer,
                               QTN_OPT const qattrs *attrs);

/** y = x * transpose(weight) + bias, over the last dimension of `x`.
 *
 *     x float, weight quantized     dynamic: `x` is quantized to uint8 by its own range, then integer arithmetic as
 *                                   below. The numerics of the weight's quantizer say how, as for
 *                                   qquantizer_choose_dynamic: fbgemm with reduce_range, over [0, 127], qnnpack over
 *                                   [0, 255], and all others as onnx, over [0, 255]
 *     both quantized (8 bit)        acc = sum((qx - zx) * (qw - zw)) exactly in int32; y = acc * (sx * sw) + bias
 *     any other mix                 float32 on dequantized values, over BLAS
 *
 * @param out the result [..., out_features]: quantized by `out_quantizer`, or float32 where that is NULL
 * @param x [..., in_features], rank 1 or more; float32, or quantized per tensor
 * @param weight [out_features, in_features]; float32, or quantized per tensor or per channel along axis 0
 * @param bias [out_features], float32; NULL: none. Where both are quantized and the result too, it takes part in the
 *   one rounding, as an int32 of scale sx * sw
 * @param out_quantizer per tensor; NULL: the result is float32
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE where features do not fit
 * @retval QTN_EDTYPE for another element type or scheme
 * @retval QTN_EINVAL for an `x` to be quantized dynamically that holds NaN or infinity
 * @since 0.1 */
QTN_API qstatus qop_linear(qtensor **out, const qtensor *x, const qtensor *weight, QTN_OPT const qtensor *bias,
                           QTN_OPT const qquantizer *out_quantizer);

/** Two-dimensional convolution, as ONNX Conv. Both quantized: exact int32 accumulation and one rounding at the end. Any
 * other mix: float32 on dequantized values. Padding is real 0, the zero point of `x`.
 *
 * @param out [N, C_out, H_out, W_out]: quantized by `out_quantizer`, or float32 where that is NULL
 * @param x [N, C_in, H, W]; float32, or quantized per tensor
 * @param weight [C_out, C_in / group, kernel_h, kernel_w]; float32, or quantized per tensor or per channel along axis 0
 * @param bias [C_out], float32; NULL: none
 * @param out_quantizer per tensor; NULL: the result is float32
 * @param attrs those of Conv
 * | key            | type   | default       | meaning
 * |----------------|--------|---------------|---------
 * | "strides"      | ints   | 1s            | steps of the kernel along each dimension
 * | "pads"         | ints   | 0s            | rows and columns of zeros: all begins, then all ends (of images top,
 * |                |        |               | left, bottom, right)
 * | "dilations"    | ints   | 1s            | distances between the taps of the kernel
 * | "kernel_shape" | ints   | of the weight | sizes of the kernel
 * | "group"        | int    | 1             | how many groups the channels are divided into
 * | "auto_pad"     | string | "NOTSET"      | "SAME_UPPER", "SAME_LOWER" or "VALID" instead of "pads"
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE where ranks, channels or group do not fit
 * @retval QTN_EDTYPE for another element type or scheme
 * @retval QTN_EINVAL for an attribute that Conv does not have
 * @since 0.1 */
QTN_API qstatus qop_conv2d(qtensor **out, const qtensor *x, const qtensor *weight, QTN_OPT const qtensor *bias,
                           QTN_OPT const qquantizer *out_quantizer, QTN_OPT const qattrs *attrs);

typedef struct qcall qcall; /**< one call of a registered operator, for as long as its callback runs */

/** Infers or runs an operator that qop_register was given, by the functions qcall_*. Many threads may call it at once.
 *
 * @param call the call: valid until the callback returns, with all that it gives
 * @param ctx the context that qop_register was given
 * @return QTN_OK. Any other status ends the call of the library that this one is part of with it; qcall_fail says why */
typedef qstatus (*qop_call_cb)(qcall *call, void *ctx);

/** Called exactly once, when an operator that qop_register was given is no longer used.
 *
 * @param ctx the context that qop_register was given */
typedef void (*qop_destroy_cb)(void *ctx);

/** Adds an operator to those that files may use: from now on qmodel_load reads nodes of it, sessions of both engines and
 * qop_run compute it by the callbacks, and qmodel_save writes its nodes as they were. Models that were loaded before do
 * not change. Its name in qop_run, in selectors of configurations and in what qmodel_inspect says is "domain::name", in
 * the domain of ONNX's own operators "name". Where a file brings a function of this name, the registered operator comes
 * first.
 *
 * The callbacks see a call by the functions qcall_*. They may use all of this library, but must not free or keep what a
 * call lends them. Several threads may be in them at once, in calls of the same operator. A C++ exception that leaves one
 * ends the call as other errors do.
 *
 *     infer          says the types and shapes of the outputs by qcall_set_output_type, from those of the inputs, from
 *                    attributes, and from values of inputs where they are known. Is called when a model is loaded and
 *                    for each new set of input shapes. QTN_ESTATE: these outputs need the value of an input which is
 *                    not known yet; it is asked again when all are
 *     run            computes the outputs. Inputs are row-major and not quantized
 *     run_quantized  the same where at least one input and output 0 are quantized per tensor to 8 bits: each input and
 *                    output that has a qtensor_quantizer holds integers, others are as in `run`. A session may hand
 *                    over an int8 grid as the uint8 grid of the same reals. QTN_EUNSUPPORTED: not these; then inputs are
 *                    dequantized, `run` computes, and its results are quantized
 *
 * In a quantized model the operator stays in float, unless it has `run_quantized` and its results are read as integers.
 * It has no gradient, and is never computed before a run, even where all its inputs are constants. Lists of strings and
 * graphs are kinds of attributes that it cannot have, and outputs whose shapes only the computation shows it cannot make.
 *
 * @param domain the domain of the operator, such as "com.example": letters, digits, _, . and -. "" or "ai.onnx" for an
 *   operator of ONNX's own which this version does not have
 * @param name what nodes call it: letters, digits and _
 * @param since_version the first version of the domain that has this form of the operator, 1 or more. A node is of the
 *   newest form that is registered and not newer than the version which its file imports
 * @param infer says types and shapes
 * @param run computes in floats, or in whatever types `infer` accepts
 * @param run_quantized computes in integers; NULL: the operator stays in float
 * @param destroy called with `ctx` when the operator is unregistered and no model or session holds it any more, on the
 *   thread that frees the last; NULL: `ctx` needs no end. Not called where this function fails, nor for what is still
 *   registered when the process ends
 * @param ctx handed to the callbacks, not looked at
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an operator that the library has, one that is registered already since this version, and a
 *   domain, name or version that no file could have
 * @since 0.1 */
QTN_API qstatus qop_register(const char *domain, const char *name, int64_t since_version, qop_call_cb infer,
                             qop_call_cb run, QTN_OPT qop_call_cb run_quantized, QTN_OPT qop_destroy_cb destroy,
                             QTN_OPT void *ctx);

/** Takes back qop_register. Models that are loaded and sessions go on with the operator; files that are loaded from now
 * on do not know it.
 *
 * @param domain as it was registered
 * @param name as it was registered
 * @param since_version as it was registered
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL where no such operator is registered
 * @since 0.1 */
QTN_API qstatus qop_unregister(const char *domain, const char *name, int64_t since_version);

/** How many inputs a call has, absent ones among them counted. Never fails.
 *
 * @param c a call
 * @return the number of inputs
 * @since 0.1 */
QTN_API size_t qcall_input_count(const qcall *c);

/** The element type of an input.
 *
 * @param c a call
 * @param index which input
 * @return the type; 0 where the input is absent
 * @since 0.1 */
QTN_API qdtype qcall_input_dtype(const qcall *c, size_t index);

/** The number of dimensions of an input.
 *
 * @param c a call
 * @param index which input
 * @return the rank; 0 where the input is absent
 * @since 0.1 */
QTN_API size_t qcall_input_rank(const qcall *c, size_t index);

/** The dimensions of an input.
 *
 * @param c a call
 * @param index which input
 * @return qcall_input_rank() dimensions; NULL where the input is absent
 * @since 0.1 */
QTN_API const int64_t *qcall_input_shape(const qcall *c, size_t index);

/** An input with its elements.
 *
 * @param c a call
 * @param index which input
 * @return the tensor, which is the library's; NULL where the input is absent, and in `infer` where its value is not known
 * @since 0.1 */
QTN_API const qtensor *qcall_input(const qcall *c, size_t index);

/** The attributes of the node, or those that qop_run was given.
 *
 * @param c a call
 * @return the attributes, which are the library's; NULL for want of memory, with which the call then ends
 * @since 0.1 */
QTN_API const qattrs *qcall_attrs(qcall *c);

/** How many outputs are wanted. Never fails.
 *
 * @param c a call
 * @return the number of outputs
 * @since 0.1 */
QTN_API size_t qcall_output_count(const qcall *c);

/** Says in `infer` what an output is. The call fails where this fails, whatever the callback returns.
 *
 * @param c a call
 * @param index which output
 * @param dtype its element type
 * @param shape `rank` dimensions, each 0 or more
 * @param rank at most 8
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an output that the call does not have
 * @retval QTN_EDTYPE for an element type that does not exist
 * @retval QTN_ESHAPE for a negative dimension or too many
 * @retval QTN_ESTATE outside of `infer`
 * @since 0.1 */
QTN_API qstatus qcall_set_output_type(qcall *c, size_t index, qdtype dtype, const int64_t *shape, size_t rank);

/** An output to be written by `run` or `run_quantized`: row-major, of the type that `infer` said or quantized, with
 * elements of any values. qtensor_data_mut gives them, and qtensor_copy fills them from another tensor.
 *
 * @param c a call
 * @param index which output
 * @return the tensor, which is the library's; NULL in `infer`, and where nothing reads the output
 * @since 0.1 */
QTN_API qtensor *qcall_output(qcall *c, size_t index);

/** Says why a call fails, for the message of the call of the library that it is part of: "name: message". That call
 * fails, whatever the callback returns; `return qcall_fail(call, QTN_ESHAPE, "x has 3 channels, not 4");` is the use of
 * it.
 *
 * @param c a call
 * @param status the status that the call ends with; QTN_EINVAL in place of one that is no failure
 * @param message one line for people, copied
 * @return never QTN_OK: `status`, or:
 * @retval QTN_EINVAL for a `status` that is no failure
 * @since 0.1 */
QTN_API qstatus qcall_fail(qcall *c, qstatus status, const char *message);

/* ---------------------------------------------------------------------------------------------------------------------
 * 7. Models
 *
 * A model is a graph of operators with its weights. It comes from an ONNX file, float or already quantized (QDQ), and
 * goes through
 *
 *     load -> prepare -> calibrate, calibrate ... -> convert -> save, or a session
 *
 * Each step gives a new model and leaves the old one as it was. A configuration says what is quantized and how.
 * qmodel_quantize takes all steps from load to convert at once, qmodel_quantize_qat with training between them;
 * qmodel_quantize_dynamic and qmodel_quantize_weights need no samples. */

/** A configuration by name: for all quantizable operators the observers and quantizers of a known recipe.
 *
 * @param out the new handle; free it with qconfig_free
 * @param name whose defaults: "onnx", ONNX Runtime's static quantization: activations uint8 affine over the range seen,
 *   weights int8 symmetric per channel in [-127, 127]. "fbgemm" and "x86", PyTorch's on servers: activations uint8 with
 *   reduce_range from histograms, weights int8 symmetric per channel. "onednn": the same without reduce_range.
 *   "qnnpack", PyTorch's on phones: without reduce_range, weights per tensor. "nvidia", NVIDIA's toolkit: activations
 *   int8 symmetric by the largest magnitude, weights likewise per channel, in [-127, 127], biases float32. "tflite",
 *   TensorFlow Lite: activations int8 affine over the range seen, weights int8 symmetric per channel in [-127, 127].
 *   "torchvision_fbgemm" and "torchvision_qnnpack", what torchvision's quantize_model(model, backend) does: activations
 *   uint8 with reduce_range over the range seen, weights int8 symmetric per channel, of qnnpack per tensor, and the
 *   settings "replace_relu6", "pools_keep_grid" and "quantize_outputs". Each with the numerics of its name; x86, onednn
 *   and torchvision's with those of fbgemm
 * @return QTN_OK, a common error, or:
 * @retval QTN_EUNSUPPORTED for a name that this version does not have (the message lists those it has)
 * @since 0.1 */
QTN_API qstatus qconfig_create(qconfig **out, const char *name);

/** Refines a configuration for some nodes, or one tensor. The most specific selector wins; of equal ones, the last set.
 *
 * Integer kernels serve 8-bit activations with weights per tensor or per channel. All else runs as float operators on
 * dequantized values: slower, and to the rounding of sums of floats alike in both engines, which add in another order.
 *
 * @param c the configuration to change
 * @param selector from the least to the most specific: "*": all nodes; "op:Conv": all nodes of one operator;
 *   "name:features.0.*": nodes whose name matches, `*` standing for any text and `?` for one character; "node:conv1":
 *   the node of that name; "tensor:relu1.out": the activation of that name, and those that share its grid. Where no
 *   node has the name (any more: layers are fused first), or no activation of that name becomes integers ("quantize"
 *   makes it), qmodel_prepare fails; the other forms may match nothing
 * @param settings what to change there; NULL: leave these nodes in float (not for a tensor). Keys that are not given
 *   stay as the recipe or a less specific selector says: that is their default. A selector of a tensor takes the
 *   settings of activations
 * | key                   | type   | default | meaning
 * |-----------------------|--------|---------|---------
 * | "observer"            | string | recipe  | of activations: a kind of section 5
 * | "scale"               | float  | none    | of the observer "fixed", together with "zero_point": the grid
 * | "zero_point"          | int    | none    | see "scale"
 * | "min"                 | float  | none    | of the observer "fixed", together with "max": the range
 * | "max"                 | float  | none    | see "min"
 * | "activation_dtype"    | string | recipe  | "uint8", "int8" or "int16"
 * | "activation_scheme"   | string | recipe  | "per_tensor_affine" or "per_tensor_symmetric"
 * | "activation_bits"     | int    | 8       | 2 to 8: integers of so many bits, in a type of 8, which int8 kernels
 * |                       |        |         | run; a Clip says so in files. Inputs of the model keep 8, and what
 * |                       |        |         | another rule makes "int16" has all 16
 * | "reduce_range"        | int    | recipe  | of activations: a switch as of qquantizer_choose
 * | "activation_learning" | string | "none"  | what a qtrainer learns of a grid: "none" (the grid is over the range
 * |                       |        |         | seen), "lsq": the scale, "lsq+": scale and zero point, "pact": both ends
 * |                       |        |         | of the range, "amax": the largest magnitude, as learn_amax of NVIDIA's
 * |                       |        |         | toolkit. "lsq+" and "pact" are of per_tensor_affine, "amax" of
 * |                       |        |         | per_tensor_symmetric; all are without reduce_range, and leave fixed
 * |                       |        |         | grids alone
 * | "margin"              | float  | 0       | 0 to 10: grids of activations reach farther than what is observed by
 * |                       |        |         | this part of it, to both sides of zero: the scale that follows from
 * |                       |        |         | all else is multiplied by 1 + margin. Grids that are fixed or learned
 * |                       |        |         | have none
 * | "scale_amax"          | float  | 1       | of activations: as for qquantizer_choose
 * | "quant_desc_input"    | string | none    | one of NVIDIA's descriptors (see qobserver_create) per tensor, which
 * |                       |        |         | says "activation_dtype" and "activation_scheme" where they are not given
 * |                       |        |         | beside it
 * | "fixed_outputs"       | int    | recipe  | 1 gives Sigmoid, HardSigmoid, Softmax and Tanh the scale that their
 * |                       |        |         | range implies
 * | "quantize"            | int    | 0       | for a tensor only: 1 makes integers of it whatever reads it, also where
 * |                       |        |         | it is an output of the model or only nodes in float read it. Pointwise
 * |                       |        |         | and moving nodes before it then compute in integers as well
 * | "mode"                | string | "static" | not for a tensor: "static" puts activations on grids that calibration
 * |                       |        |         | finds; "dynamic" gives a MatMul or Gemm a grid for each row of its input
 * |                       |        |         | at every run (qmodel_quantize_dynamic); "weights_only" leaves activations
 * |                       |        |         | in float and stores weights as integers (qmodel_quantize_weights). Both
 * |                       |        |         | store tables of embeddings and weights of LSTM, GRU and RNN, too, and
 * |                       |        |         | leave all other nodes in float. QTN_QAT takes "static" alone
 * | "attention"           | string | recipe  | not for a tensor: "float" leaves both products of attention, of queries
 * |                       |        |         | and keys and of Softmax's result and values, in float; "dynamic" brings
 * |                       |        |         | them to 8 bits at every run, by row, by key and by feature; "auto" does so
 * |                       |        |         | where a head has at least 8192 elements of keys, by the shapes of the
 * |                       |        |         | model, and no mask hides tokens from some queries and not from others
 * | "quantize_outputs"    | int    | recipe  | not for a tensor: 1 does so with what the nodes make for outputs of the
 * |                       |        |         | model. Sessions give float32 on that grid, files have QuantizeLinear and
 * |                       |        |         | DequantizeLinear there, or operators such as QLinearConv. Where a "node:"
 * |                       |        |         | makes no output of float32, qmodel_prepare fails
 * | "numerics"            | string | recipe  | of activations and weights: a name of section 3
 * | "averaging_constant"  | float  | 0.01    | of activations and weights: for the observers, as the next four
 * | "eps"                 | float  | 2^-23   | as for qquantizer_choose
 * | "percentile"          | float  | 99.999  | as for qobserver_create
 * | "bins"                | int    | 2048    | as for qobserver_create
 * | "absolute"            | int    | 1       | as for qobserver_create
 * | "weight_observer"     | string | recipe  | minmax, max or moving_average; another kind where weights have one scale
 * | "weight_dtype"        | string | "int8"  | "int8" or "int4", which says the same as "weight_bits" 4
 * | "weight_bits"         | int    | 8       | 2 to 8: integers of so many bits. Weights of 3 and 4 bits are stored in
 * |                       |        |         | 4 (int4), of 2 in 2 (int2), of 5 to 8 in 8 (int8); kernels unpack them
 * |                       |        |         | when a session is made. qmodel_save says what files hold
 * | "weight_scheme"       | string | recipe  | "per_channel_symmetric", "per_tensor_symmetric" or "per_block_symmetric"
 * | "block_size"          | int    | none    | of per_block_symmetric, which needs it: elements with one scale, along
 * |                       |        |         | the axis that a product sums over
 * | "weight_narrow_range" | int    | recipe  | a switch as of qquantizer_choose
 * | "weight_reduce_range" | int    | 0       | a switch as of qquantizer_choose
 * | "weight_learning"     | string | "none"  | "none" (the grid is over what the weights are at each step), "lsq":
 * |                       |        |         | scales are learned, "amax" of per_tensor_symmetric: the largest
 * |                       |        |         | magnitude
 * | "weight_scale_amax"   | float  | 1       | as "scale_amax"
 * | "quant_desc_weight"   | string | none    | as "quant_desc_input". Which axis channels are along follows from the
 * |                       |        |         | node
 * | "bias"                | string | recipe  | "int32", or "float32": biases stay as they are (recipe "nvidia").
 * |                       |        |         | Kernels add both alike
 * | "replace_relu6"       | int    | recipe  | 1 makes Relu of each Clip between 0 and 6, also where it was fused into
 * |                       |        |         | the node, before anything is observed: no longer the same function, but
 * |                       |        |         | what PyTorch's networks do before they are quantized
 * | "pools_keep_grid"     | int    | recipe  | 1 leaves what AveragePool, GlobalAveragePool and the mean over an image
 * |                       |        |         | make on the grid of what they read, as PyTorch does, rather than on one
 * |                       |        |         | of its own
 * | "fused_fake_quant"    | int    | 0       | 1 trains with grids as get_default_qat_qconfig of PyTorch does
 * |                       |        |         | (FusedMovingAvgObsFakeQuantize): over moving averages of the weights'
 * |                       |        |         | range too, with scale and zero point of
 * |                       |        |         | fbgemm::ChooseQuantizationParams, symmetric scales max(-min / 128, max /
 * |                       |        |         | 127), activations clipped at 127 under reduce_range. As there,
 * |                       |        |         | conversion has the rule of observers (amax / 127.5), and so other grids
 * |                       |        |         | than training, and weights lag behind; without it a converted model has
 * |                       |        |         | the grids that it was trained with
 * | "equalize"            | int    | 0       | 1 equalizes the ranges of weights between layers that follow each other
 * |                       |        |         | (cross-layer equalization, Nagel et al. 2019) before anything is
 * |                       |        |         | observed or trained; the float model's function stays as it is. With
 * |                       |        |         | QTN_QAT normalizations are then folded before training
 * @return QTN_OK, a common error, or one of these; then the configuration is unchanged:
 * @retval QTN_EINVAL for a selector of another form, or an unknown operator, setting or value
 * @retval QTN_EUNSUPPORTED for a grid that this version does not offer
 * @since 0.1 */
QTN_API qstatus qconfig_set(qconfig *c, const char *selector, QTN_OPT const qattrs *settings);

/** Writes a configuration as JSON text: the name of its recipe and what was set, {"recipe": "onnx", "rules":
 * [{"selector": "op:Conv", "settings": {"bins": 512}}, {"selector": "node:head", "settings": null}]}.
 *
 * @param c the configuration
 * @param path the file; replaced whole
 * @return QTN_OK, a common error, or:
 * @retval QTN_EIO where the file cannot be written
 * @since 0.1 */
QTN_API qstatus qconfig_save(const qconfig *c, const char *path);

/** A configuration from such a file. true and false may stand for 1 and 0; "rules" may be absent.
 *
 * @param out the new handle; free it with qconfig_free
 * @param path the file
 * @return QTN_OK, a common error, one of qconfig_create or qconfig_set for the recipe or a rule (the message has the
 *   number of the rule, counted from 1), or:
 * @retval QTN_EIO where the file cannot be read
 * @retval QTN_EFORMAT for text of another form (the message lists the valid members)
 * @since 0.1 */
QTN_API qstatus qconfig_load(qconfig **out, const char *path);

/** Frees a configuration. Models prepared with it stay as they are.
 *
 * @param c the handle, or NULL
 * @since 0.1 */
QTN_API void qconfig_free(QTN_OPT qconfig *c);

/** Reads an ONNX file of opset 1 to 28. External data is looked for beside the file, and nowhere above its folder.
 *
 * @param out the new handle; free it with qmodel_free
 * @param path the file
 * @return QTN_OK, a common error, or:
 * @retval QTN_EIO where a file cannot be read
 * @retval QTN_EFORMAT where it is no valid ONNX model
 * @retval QTN_EUNSUPPORTED for an opset, operator or element type that this version does not have (the message names
 *   operator, domain and node)
 * @retval QTN_ESHAPE where shapes inside the model do not fit together
 * @since 0.1 */
QTN_API qstatus qmodel_load(qmodel **out, const char *path);

/** Reads an ONNX model from memory. External data is refused: there is no file that it would lie beside.
 *
 * @param out the new handle; free it with qmodel_free
 * @param data the bytes of an ONNX file; copied where needed
 * @param nbytes how many
 * @return QTN_OK, a common error, one of qmodel_load, or:
 * @retval QTN_EUNSUPPORTED for external data
 * @since 0.1 */
QTN_API qstatus qmodel_load_bytes(qmodel **out, const void *data, size_t nbytes);

/** Writes an ONNX file that other runtimes read: a float model as it is, a converted one as QDQ or as operators on
 * integers. Writes to a temporary name beside `path` and renames, so that no half of a file is ever there.
 *
 * @param m a loaded or converted model
 * @param path the file; replaced where it exists
 * @param attrs form and opset of the file
 * | key            | type   | default | meaning
 * |----------------|--------|---------|---------
 * | "format"       | string | "qdq"   | "qdq" writes QuantizeLinear and DequantizeLinear around each quantized value;
 * |                |        |         | "qoperator" writes QLinearConv, QLinearMatMul and ONNX Runtime's QGemm,
 * |                |        |         | QLinearAdd ... (domain com.microsoft), and what has no such operator as QDQ
 * | "weight_pairs" | int    | 0       | of qdq: 1 writes weights of 8 bits as floats, with QuantizeLinear and
 * |                |        |         | DequantizeLinear behind them, as TensorRT's documentation and NVIDIA's toolkit
 * |                |        |         | have them; a larger file of the same meaning
 * | "opset"        | int    | 21      | 13 to 28; unless given the first one from 21 on that has the model's operators, or
 * |                |        |         | 20 for activations of int8, of which ONNX Runtime 1.31 takes no files of later
 * |                |        |         | ones, if that has all of the model.
 * |                |        |         | Weights of 4 bits are written as INT4 from opset 21 on, those of 2 as INT2 from
 * |                |        |         | 25 on; before that, and as operands of QLinearConv and the like, as the same
 * |                |        |         | integers in the next wider type
 * | "external_data"| int    | none    | 1 writes constants of 1024 bytes and more into a file beside the model's,
 * |                |        |         | PATH.data, or PATH.1.data ... where that is there, and removes the one that a
 * |                |        |         | model named that this one replaces; 0 does not; unless given, where one file of
 * |                |        |         | ONNX, which is limited to 2 GiB, cannot hold them
 * @return QTN_OK, a common error, or:
 * @retval QTN_EIO where a file cannot be written
 * @retval QTN_ESTATE for a model between prepare and convert
 * @retval QTN_EUNSUPPORTED where the opset cannot say it (activations of 16 bits and blocks come with 21; the message
 *   names the node), or ONNX cannot (a grid of fewer integers than its type has)
 * @retval QTN_EINVAL for other attributes
 * @since 0.1 */
QTN_API qstatus qmodel_save(const qmodel *m, const char *path, QTN_OPT const qattrs *attrs);

/** The file that qmodel_save would write, as bytes, for qmodel_load_bytes and for programs that keep models elsewhere.
 *
 * @param out the bytes of an ONNX file; free them with qblob_free
 * @param m a loaded or converted model
 * @param attrs form and opset of the file
 * | key         | type | default | meaning
 * |-------------|------|---------|---------
 * | qmodel_save |      |         | its options
 * @return QTN_OK, a common error, or one of qmodel_save
 * @since 0.1 */
QTN_API qstatus qmodel_save_bytes(qblob **out, const qmodel *m, QTN_OPT const qattrs *attrs);

/** A copy in which a chain of nodes has become one, as PyTorch's fuse_modules does it. Nothing needs it: qmodel_prepare
 * and sessions fuse all that can be. It is for programs that must know where a model cannot be fused as they think,
 * or a file in which batch normalization is part of the weights.
 *
 * What follows decides, as PyTorch's is_qat does: sessions, files and QTN_PTQ have the folded weights. qmodel_prepare
 * with QTN_QAT and trainers have the normalization back, and train it within the layer; not where qmodel_set_tensor has
 * replaced the folded weights, and not of a model that was saved and read again. A chain whose normalization is in
 * training mode (exported so) is checked and stays as it is, for training alone takes such a model.
 *
 * @param out the model with the fused node, which has the name of the first; free it with qmodel_free
 * @param m a loaded model
 * @param nodes names of nodes, in order: a Conv or Gemm (PyTorch's Linear), then BatchNormalization, Relu or Clip, or
 *   both; or a BatchNormalization or Add, then Relu or Clip
 * @param count 2 or 3
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a name that no node has, or nodes that are no such chain (the message names them)
 * @retval QTN_ESTATE for a model between prepare and convert
 * @since 0.1 */
QTN_API qstatus qmodel_fuse(qmodel **out, const qmodel *m, const char *const *nodes, size_t count);

/** A copy with observers: constants folded, batch normalization and activations fused into the layers before them, and
 * an observer at every value that the configuration says to quantize.
 *
 * @param out the prepared model; free it with qmodel_free
 * @param m a loaded float model
 * @param config what to quantize, and how; may be freed afterwards
 * @param mode QTN_PTQ: to be calibrated with qmodel_calibrate, then converted. QTN_QAT: to be trained with a trainer,
 *   then converted; may be calibrated before, so that training begins with these grids. A model that was exported in
 *   training mode is for QTN_QAT only, whatever the configuration; one in evaluation mode for both, where PyTorch's
 *   prepare_qat demands model.train(): here the trainer decides when a normalization goes by its batch ("freeze_bn")
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE for a model that is prepared already
 * @retval QTN_EUNSUPPORTED for one that is quantized already, and with QTN_PTQ for one in training mode (the message
 *   names the node)
 * @retval QTN_EINVAL where the configuration names a node or a tensor that is not there (the message has the nearest
 *   names)
 * @since 0.1 */
QTN_API qstatus qmodel_prepare(qmodel **out, const qmodel *m, const qconfig *config, qmode mode);

/** Runs the float model on one sample, or a batch of them, and lets every observer see its value. Call it for each
 * sample of representative data; some hundred are plenty.
 *
 * @param prepared a prepared model
 * @param inputs one tensor for each input of the model, in its order, float32
 * @param input_count qmodel_input_count(prepared)
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE for a model that is not prepared
 * @retval QTN_EINVAL for another count, or a value that is NaN or infinite (the message names tensor and sample)
 * @retval QTN_ESHAPE for an input of a shape that does not fit
 * @retval QTN_EDTYPE for an input of another element type
 * @since 0.1 */
QTN_API qstatus qmodel_calibrate(qmodel *prepared, const qtensor *const *inputs, size_t input_count);

/** Writes what the observers of a prepared model have gathered to a file (.qcal), by a temporary name as qmodel_save.
 * So samples can be spread over processes and machines: each calibrates with its share and saves, and one loads all
 * files and converts.
 *
 * @param prepared a prepared model
 * @param path the file; replaced where it exists
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE for a model that is not prepared
 * @retval QTN_EIO where the file cannot be written
 * @since 0.1 */
QTN_API qstatus qmodel_save_calibration(const qmodel *prepared, const char *path);

/** Adds what a file of qmodel_save_calibration holds to what the model has seen, as if it had been calibrated with
 * those samples too. docs/quantization.md says for which observers that is exact.
 *
 * @param prepared a model prepared from the same file, with the same configuration
 * @param path the file
 * @return QTN_OK, a common error, or one of these; then the model is unchanged:
 * @retval QTN_ESTATE for a model that is not prepared
 * @retval QTN_EIO where the file cannot be read
 * @retval QTN_EFORMAT where it is no calibration file
 * @retval QTN_EUNSUPPORTED where another version of the format wrote it
 * @retval QTN_EINVAL where it is of another model or configuration (the message says which)
 * @since 0.1 */
QTN_API qstatus qmodel_load_calibration(qmodel *prepared, const char *path);

/** Adds up files of qmodel_save_calibration, without their model.
 *
 * @param path the file to write; replaced where it exists, also where it is one of `parts`
 * @param parts the files to read, in the order in which they are added
 * @param count how many, 1 or more
 * @return QTN_OK, a common error, one of qmodel_load_calibration (the message names the file and what differs), or:
 * @retval QTN_EINVAL for no parts
 * @retval QTN_EIO where a file cannot be read or written
 * @since 0.1 */
QTN_API qstatus qmodel_merge_calibrations(const char *path, const char *const *parts, size_t count);

/** The int8 model: weights quantized, a quantizer at every observed value. What is not quantized stays in float, and
 * conversions are placed where the two meet.
 *
 * @param out the converted model; free it with qmodel_free
 * @param prepared a prepared model that was calibrated; more calibration and another conversion may follow
 * @param attrs none in this version
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE for a model that is not prepared or has not been calibrated
 * @retval QTN_EINVAL for any attribute
 * @since 0.1 */
QTN_API qstatus qmodel_convert(qmodel **out, const qmodel *prepared, QTN_OPT const qattrs *attrs);

/** Quantizes a model in one call: qmodel_prepare, qmodel_calibrate with every sample, qmodel_convert; and what makes up
 * for lost accuracy, where that gains. The functions that it is given are called on the thread that called this one.
 *
 * What may gain is tried, and judged by the outputs on samples that are held back: a third of all, at most
 * "measured_samples". A candidate is kept where these samples, all together and the typical one, come nearer to float
 * by a tenth of a decibel, or half a decibel for what changes ranges, and by more the fewer samples there are and the
 * fewer numbers their outputs have; no single sample decides, and the samples that a candidate was fitted to do not
 * come out worse. What changes ranges must hold with those of its own samples and with those of all. A single sample
 * judges itself. So the result is the plain recipe's where nothing helps, and the report says what was tried and what
 * it gave. By default these candidates are tried: the equalization of weights, where the configuration does not say
 * "equalize" itself, int8 weights of recurrent layers, which need only cost nothing or meet the target, where it says
 * no "mode", the smoothing of features, the observers "percentile" and "mse" in place of "minmax", where the
 * configuration names none, "bias_correction", and "gptq" where weights are coarse.
 *
 * Where all that stays below 20 dB, the network would be of no use: then the fewest layers stay in float with which the
 * outputs reach 25 dB on at most four of the samples, unless "plain" is 1, a target is given, or the configuration says
 * "mode", "weight_bits", "weight_dtype" or "activation_bits". The report names these layers.
 *
 * @param out the converted model; free it with qmodel_free
 * @param report what was done and why, as JSON (docs/quantization.md has its members), which qreport_summary puts into
 *   sentences; free it with qblob_free. NULL: not wanted. It counts samples by rows: a batch of 32 is 32 samples
 * @param m a loaded float model
 * @param config what to quantize, and how
 * @param sample gives the samples, or batches of them
 * @param sample_count how many there are
 * @param attrs what is tried, and what is measured; NULL: the defaults
 * | key                | type   | default | meaning
 * |--------------------|--------|---------|---------
 * | "plain"            | int    | 0       | 1 tries nothing: the result is that of the three functions
 * | "bias_correction"  | int    | 1       | 1 tries to give each output channel of a layer the mean that it has in the
 * |                    |        |         | float model, as far as the samples agree on it (Nagel et al. 2019)
 * | "gptq"             | int    | 1       | 1 tries, where weights have 4 bits or fewer and there are two samples or
 * |                    |        |         | more, to round them one input after the other so that those which follow
 * |                    |        |         | make up for the errors (Frantar et al. 2022)
 * | "adaround"         | int    | 0       | 1 tries to round weights up or down so that the outputs of a layer come
 * |                    |        |         | nearest (Nagel et al. 2020)
 * | "smooth"           | float  | 0       | above 0, at most 1: tries SmoothQuant (Xiao et al. 2022) of this strength:
 * |                    |        |         | channels of activations that are larger than others are made smaller, the
 * |                    |        |         | weights that read them larger
 * | "absorb_bias"      | int    | 0       | 1 tries, after equalization, to move what a channel in front of a Relu
 * |                    |        |         | always exceeds from its bias into that of the layer behind, where that has
 * |                    |        |         | no padding
 * | "auto"             | int    | 0       | 1 tries more: SmoothQuant of strength 0.5; "mode" "dynamic" for MatMul and
 * |                    |        |         | Gemm where the configuration says no mode, kept where it halves the noise,
 * |                    |        |         | or where a target is missed without it; and for each tensor the observer
 * |                    |        |         | with which the layers that read it lose least in place of the
 * |                    |        |         | configuration's. With a target it also runs the model with these products
 * |                    |        |         | static, dynamic and with weights only, and keeps the fastest that reaches
 * |                    |        |         | it. Needs two samples; with one it tries what the default does
 * | "target_sqnr"      | float  | none    | in dB: where what was kept does not reach it, leaves the fewest layers in
 * |                    |        |         | float with which each output reaches that signal to noise ratio. Outputs
 * |                    |        |         | behind integers that are computed from floats, such as the boxes that a
 * |                    |        |         | detector keeps, count only where there are no others
 * | "target_top1"      | float  | none    | in (0, 1]: the same until on this part of all samples the first output has
 * |                    |        |         | its largest value where the float model has it: along the last axis of each
 * |                    |        |         | row, the first of equals. With both, both hold. Where a target cannot be
 * |                    |        |         | reached, every layer falls back, and the report says what was reached
 * | "fallback"         | string | "float" | what these layers become: "float", or "int16": activations that they read
 * |                    |        |         | or make get 16 bits. Such a file needs opset 21. For engines with kernels
 * |                    |        |         | of 16 bits: this one is slower with them than with float
 * | "sensitivity"      | int    | 0       | 1 measures every layer for the report: quantized alone, and in the
 * |                    |        |         | quantized model
 * | "histograms"       | int    | 0       | 1 counts for the report what calibration sees of each tensor, in 128 bins
 * |                    |        |         | at most
 * | "measured_samples" | int    | 32      | how many samples at most, evenly spread, what is tried is fitted to, and
 * |                    |        |         | how many judge it; "target_sqnr" and "sensitivity" measure with so many,
 * |                    |        |         | too. "bias_correction" and "adaround" take as many of them as have
 * |                    |        |         | room in a GiB of activations, at least one
 * @param progress told how far it is, and may cancel; NULL: nothing is told
 * @param ctx what `sample` and `progress` are given
 * @return QTN_OK, a common error, one of qmodel_prepare, qmodel_calibrate or qmodel_convert, what `sample` returned,
 *   or:
 * @retval QTN_ECANCELED where `progress` cancels
 * @retval QTN_ESTATE without samples
 * @retval QTN_EINVAL for an option that is unknown or out of range, "fallback" without a target, or "plain" with a
 *   candidate
 * @retval QTN_EUNSUPPORTED for "target_top1" of a model whose first output has no rows of float32
 * @since 0.1 */
QTN_API qstatus qmodel_quantize(qmodel **out, QTN_OPT qblob **report, const qmodel *m, const qconfig *config,
                                qmodel_sample_cb sample, size_t sample_count, QTN_OPT const qattrs *attrs,
                                QTN_OPT qmodel_progress_cb progress, QTN_OPT void *ctx);

/** Quantization-aware training in one call: qmodel_prepare with QTN_QAT, qmodel_calibrate, a trainer and its steps,
 * qtrainer_model, qmodel_convert. The float model stays as it was. The functions that it is given are called on the
 * thread that called this one.
 *
 * The recipe is that of docs/training.md: what calibration has found stays, a low rate falls along a cosine to 1 % of
 * it, and running statistics stay in the last fifth of the steps, the last epoch at least ("freeze_bn": all the time
 * with 1, never with 0). There is no validation: the last step is converted. To choose the best epoch, and for
 * checkpoints, use a trainer.
 *
 * @param out the converted model; free it with qmodel_free
 * @param report what was done and why, as JSON (as qmodel_quantize; "training" has the losses); free it with
 *   qblob_free. NULL: not wanted
 * @param m a loaded float model
 * @param config what to quantize, and how
 * @param batch gives the batches
 * @param batch_count how many an epoch has
 * @param target_count how many targets a batch has: one for each output of the model; of "distillation" with "alpha"
 *   two
 * @param attrs the course; "total_steps" follows from it. NULL: the defaults
 * | key                   | type   | default     | meaning
 * |-----------------------|--------|-------------|---------
 * | "epochs"              | int    | 5           | how often all batches are taken; NVIDIA's guide to its toolkit
 * |                       |        |             | advises a tenth of those of the original training
 * | "calibration_batches" | int    | 16          | evenly spread over epoch 0; 0: none, and grids follow what is seen,
 * |                       |        |             | as in PyTorch
 * | "optimizer"           | string | "adamw"     | as for qtrainer_create
 * | "lr"                  | float  | 0.0005      | of "sgd" 0.01 unless given; NVIDIA's guide: 1 % of the original rate
 * | "momentum"            | float  | 0.9         | of "sgd"
 * | "schedule"            | string | "cosine"    | as for qtrainer_create
 * | "min_lr"              | float  | 1 % of "lr" | of "cosine"
 * | qtrainer_create       |        |             | its other options, too, except "total_steps"
 * @param progress told how far it is, and may end the training or cancel; NULL: nothing is told
 * @param ctx what `batch` and `progress` are given
 * @return QTN_OK, a common error, one of qmodel_prepare, qmodel_calibrate, qtrainer_create, qtrainer_step or
 *   qmodel_convert, what `batch` returned, or:
 * @retval QTN_ECANCELED where `progress` cancels
 * @retval QTN_EINVAL without batches, and for an option that is unknown or out of range
 * @since 0.1 */
QTN_API qstatus qmodel_quantize_qat(qmodel **out, QTN_OPT qblob **report, const qmodel *m, const qconfig *config,
                                    qmodel_batch_cb batch, size_t batch_count, size_t target_count,
                                    QTN_OPT const qattrs *attrs, QTN_OPT qmodel_training_cb progress,
                                    QTN_OPT void *ctx);

/** What a report says, in sentences for people: what was tried, the signal to noise ratio and the decisions on samples
 * held back, how many nodes compute in integers and why others do not, how fast the model is where that was measured,
 * warnings, and what may be done where the model is not near enough to float. `qtensor quantize` ends with these lines.
 *
 * @param out the text, UTF-8, a line each, with a line feed behind each: qblob_data() ends with a NUL that qblob_size()
 *   does not count; free it with qblob_free
 * @param report JSON of qmodel_quantize or qmodel_quantize_qat, ending with a NUL. Who has measured the speed adds to
 *   it "speed": {"batch": 1, "float_ms": 3.1, "int8_ms": 1.2}, in milliseconds for each run
 * @return QTN_OK, a common error, or:
 * @retval QTN_EFORMAT for text that is no JSON, or no report (the message says where)
 * @since 0.1 */
QTN_API qstatus qreport_summary(qblob **out, const char *report);

/** Quantizes a model without samples: activations get their grids when they are known, at every run. MatMul with a
 * constant matrix on the right, and Gemm with constant weights, become products of integers: x as uint8 over its own
 * range, weights as the configuration says, results in float. LSTM, GRU and RNN get int8 weights, and
 * tables of embeddings (Gather of rows of a constant with 8 columns and 1024 elements or more) int8 rows, as the settings
 * of their nodes say of weights. All else is in float.
 *
 * By default each row of x, along its last axis, has a scale and a zero point of its own: those of
 * DynamicQuantizeLinear of this row. So a sample has the same result in every batch, and a token with large values costs
 * the others nothing. With one grid for the whole tensor ("granularity": "tensor"), it is that of
 * qquantizer_choose_dynamic for QTN_UINT8 under the numerics of the node's settings: PyTorch's under fbgemm, with
 * "reduce_range" where the settings have it (recipes fbgemm and x86 do, onednn does not), and qnnpack; that of
 * DynamicQuantizeLinear under all others. Results are then those of qop_linear, bit for bit.
 *
 * Files have products as DynamicQuantizeLinear and MatMulInteger, and give them back. ONNX's operator knows neither rows
 * nor PyTorch's grids: files have their formula in ONNX's own operators, with the same bits.
 *
 * @param out the quantized model; free it with qmodel_free
 * @param m a loaded float model
 * @param config the weights of each node: of 8 bits, per tensor or channel; and which nodes stay in float. Only "numerics"
 *   and "reduce_range" count of what it says of activations.
 * @param attrs which operators are taken
 * | key    | type | default | meaning
 * |--------|------|---------|---------
 * | "conv" | int  | 0       | 1 takes Conv with constant weights too, as DynamicQuantizeLinear and ConvInteger, with
 * |        |      |         | one scale for the whole x; other runtimes are often slower with these than with floats
 * | "granularity" | string | "row"; "tensor" under PyTorch's numerics | what of x has a scale of its own, for MatMul
 * |        |      |         | and Gemm: each "row" of it, or the whole "tensor"
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE for a model that is prepared already
 * @retval QTN_EUNSUPPORTED for one that is quantized already or in training mode, weights of another form, or rows under
 *   PyTorch's numerics
 * @retval QTN_EINVAL for other attributes, weights that are NaN or infinite, or a configuration that names a node that
 *   is not there
 * @since 0.1 */
QTN_API qstatus qmodel_quantize_dynamic(qmodel **out, const qmodel *m, const qconfig *config,
                                        QTN_OPT const qattrs *attrs);

/** Makes a model small, and leaves its arithmetic as it is: constant weights of Conv, Gemm and MatMul (matrices) become
 * integers on a symmetric grid over [-amax, amax], which a session turns back into floats once. Files have them behind
 * DequantizeLinear. Tables of embeddings do too (Gather of rows of a constant with 8 columns and 1024 elements or more),
 * by row; a session reads rows of int8 as they are asked for. With "int8", weights of LSTM, GRU and RNN do too, as
 * qmodel_quantize_dynamic makes them.
 *
 * @param out the model; free it with qmodel_free
 * @param m a loaded float model
 * @param attrs the grid of the weights
 * | key          | type   | default | meaning
 * |--------------|--------|---------|---------
 * | "dtype"      | string | "int8"  | "int8" or "int4"
 * | "block_size" | int    | 0       | how many weights share a scale along the axis that products sum over (of Conv the
 * |              |        |         | input channels); 0, and where the axis is shorter: one scale for each output
 * |              |        |         | channel
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE for a model that is prepared already
 * @retval QTN_EUNSUPPORTED for one that is quantized already or in training mode
 * @retval QTN_EINVAL for other attributes, or weights that are NaN or infinite
 * @since 0.1 */
QTN_API qstatus qmodel_quantize_weights(qmodel **out, const qmodel *m, QTN_OPT const qattrs *attrs);

/** The number of inputs, weights not counted.
 *
 * @param m a model
 * @return the number of inputs; 0 where `m` is NULL
 * @since 0.1 */
QTN_API size_t qmodel_input_count(const qmodel *m);

/** The name of an input; NULL for an index out of range. Lives as long as `m`.
 *
 * @param m a model
 * @param index from 0 to qmodel_input_count(m) - 1
 * @return the name; NULL for an index out of range
 * @since 0.1 */
QTN_API const char *qmodel_input_name(const qmodel *m, size_t index);

/** The element type that an input is declared with; 0 for an index out of range.
 *
 * @param m a model
 * @param index from 0 to qmodel_input_count(m) - 1
 * @return the element type; 0 for an index out of range
 * @since 0.1 */
QTN_API qdtype qmodel_input_dtype(const qmodel *m, size_t index);

/** The number of dimensions that an input is declared with; 0 for an index out of range, and where the model does not
 * say.
 *
 * @param m a model
 * @param index from 0 to qmodel_input_count(m) - 1
 * @return the number of dimensions; 0 for an index out of range, and where the model does not say
 * @since 0.1 */
QTN_API size_t qmodel_input_rank(const qmodel *m, size_t index);

/** The qmodel_input_rank(m, index) dimensions that an input is declared with; -1 for one that is symbolic, such as a
 * batch of any size. NULL for an index out of range, and where the model does not say. They live as long as `m`.
 *
 * @param m a model
 * @param index from 0 to qmodel_input_count(m) - 1
 * @return the dimensions; NULL for an index out of range, and where the model does not say
 * @since 0.1 */
QTN_API const int64_t *qmodel_input_shape(const qmodel *m, size_t index);

/** The number of outputs.
 *
 * @param m a model
 * @return the number of outputs; 0 where `m` is NULL
 * @since 0.1 */
QTN_API size_t qmodel_output_count(const qmodel *m);

/** The name of an output; NULL for an index out of range. Lives as long as `m`.
 *
 * @param m a model
 * @param index from 0 to qmodel_output_count(m) - 1
 * @return the name; NULL for an index out of range
 * @since 0.1 */
QTN_API const char *qmodel_output_name(const qmodel *m, size_t index);

/** The number of tensors that a model holds: weights, biases and whatever else its nodes read that is constant.
 *
 * @param m a model, in any state
 * @return the number of tensors; 0 where `m` is NULL
 * @since 0.1 */
QTN_API size_t qmodel_tensor_count(const qmodel *m);

/** The name of a tensor; NULL for an index out of range. Lives as long as `m`. It is that of the initializer in the
 * file; of one that was made of an initializer, that and what was done: "conv.weight_quantized"; or, until it is
 * quantized, that of the node whose normalization it has taken in ("conv1_weight_folded").
 *
 * @param m a model
 * @param index from 0 to qmodel_tensor_count(m) - 1
 * @return the name; NULL for an index out of range
 * @since 0.1 */
QTN_API const char *qmodel_tensor_name(const qmodel *m, size_t index);

/** A tensor of a model, as a copy: what is done to it does not change the model. The weights of a float or a prepared
 * model are float32; those of a converted one are integers with their quantizer, and biases int32. The weights of dynamic products are
 * [in_features, out_features], with a scale for all or along axis 1. What a trainer makes of weights is in
 * qtrainer_parameter and in the model of qtrainer_model.
 *
 * @param out a new row-major tensor; free it with qtensor_free
 * @param m a model, in any state
 * @param name one of qmodel_tensor_name; or that of the initializer in the float model's file that it was made of,
 *   where only one tensor was: "conv.weight" for "conv.weight_quantized"
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL where no tensor has this name (the message has the nearest ones) or several come from it
 * @since 0.1 */
QTN_API qstatus qmodel_tensor(qtensor **out, const qmodel *m, const char *name);

/** Replaces a tensor of a model by a copy of another one. Sessions, prepared and converted models that were made before
 * keep what they had. A quantized tensor gets the quantizer of the copy too, with its scales in float32, as a file holds
 * them; a bias beside it keeps its own, and is rounded to the units of the new products where they are computed.
 *
 * @param m a loaded or converted model
 * @param name as for qmodel_tensor
 * @param t of the same shape and element type; quantized if what it replaces is
 * @return QTN_OK, a common error, or one of these; then the model is as it was:
 * @retval QTN_EINVAL where no tensor has this name (the message has the nearest ones) or several come from it
 * @retval QTN_EDTYPE for a `t` of another type
 * @retval QTN_ESHAPE for a `t` of another shape
 * @retval QTN_ESTATE for a prepared model, whose observers know other weights
 * @retval QTN_EUNSUPPORTED for a tensor that is neither float32 nor quantized, one that would change shapes, and for
 *   weights of dynamic products whose scales cannot be those of `t`
 * @since 0.1 */
QTN_API qstatus qmodel_set_tensor(qmodel *m, const char *name, const qtensor *t);

/** What is in a model as a session runs it, constants folded and activations fused, as JSON text: name; inputs and
 * outputs with name, dtype and shape; nodes with name, op, dtype ("int8" where they run in integers, "float32" where
 * not), in a quantized model the reason why a node runs on floats or slowly, inputs and outputs, and for products by
 * constants weight_dtype, the type in which these are stored ("int4" ...); type, scale and zero point of inputs and
 * outputs of nodes that are quantized; the number of parameters and their bytes; and the list of nodes left in float.
 *
 * @param out the text: qblob_data() ends with a NUL that qblob_size() does not count; free it with qblob_free
 * @param m a model
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qmodel_inspect(qblob **out, const qmodel *m);

/** Frees a model. Sessions created from it go on.
 *
 * @param m the handle, or NULL
 * @since 0.1 */
QTN_API void qmodel_free(QTN_OPT qmodel *m);

/* ---------------------------------------------------------------------------------------------------------------------
 * 8. Sessions
 *
 * A model made ready to run: weights packed for the kernels of this CPU, memory planned. One session may be run from
 * many threads at once; one with state (qsession_bind) serves one run at a time.
 *
 * A session keeps the memory of its runs for later ones: what qsession_profile says under plan_bytes, for each of the
 * last 8 plans and of the runs that were under way at once; where shapes follow from data, up to twice what such a run
 * used. It goes with the session.
 *
 * A run may take 1 GiB at a time, 16 bytes more for each byte of the model's constants and 4096 more for each byte of
 * its inputs. No network that people use comes near that; a small file that asks for more gets QTN_ENOMEM, before the
 * memory is taken. */

/** A session.
 *
 * @param out the new handle; free it with qsession_free
 * @param m a loaded or converted model; may be freed afterwards
 * @param attrs engine and threads
 * | key       | type   | default  | meaning
 * |-----------|--------|----------|---------
 * | "engine"  | string | "native" | "native" runs kernels of integers where values are quantized, of floats elsewhere;
 * |           |        |          | "reference" runs each node by its definition, slowly, to check the other
 * | "threads" | int    | 0        | for one run; 0 takes what qlib_set_threads says at each run
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for another option or value
 * @retval QTN_ESTATE for a model between prepare and convert
 * @retval QTN_ENOMEM where runs of the declared inputs would take more than is said above
 * @since 0.1 */
QTN_API qstatus qsession_create(qsession **out, const qmodel *m, QTN_OPT const qattrs *attrs);

/** Runs the model once.
 *
 * @param outputs receives one new tensor for each output of the model, in its order: plain integers where the file's
 *   nodes compute such, else float32
 * @param output_count qmodel_output_count of the model
 * @param s the session
 * @param inputs one tensor for each input of the model, in its order; where the model leaves a dimension open, it may
 *   differ from run to run. Where shapes follow from what an input holds (sizes, axes, scales: at most 64 elements), a
 *   run with other values plans again, as one with other shapes does; the last 8 plans are kept. NULL stands for the
 *   state of an input that qsession_bind has bound
 * @param input_count qmodel_input_count of the model
 * @return QTN_OK, a common error, or one of these; then no output is left behind, and state is what it was:
 * @retval QTN_EINVAL for another count, or NULL for an input without state
 * @retval QTN_ESHAPE for an input of a shape that does not fit, or a bound output that its input does not take
 * @retval QTN_EDTYPE for an input of another element type, or such an output
 * @retval QTN_ESTATE where another run of a session with state is under way, and for NULL where an input's first state
 *   is not known
 * @since 0.1 */
QTN_API qstatus qsession_run(qtensor **outputs, size_t output_count, const qsession *s, const qtensor *const *inputs,
                             size_t input_count);

/** Runs the model once with a clock around each step. JSON text: engine, isa, threads, weights_bytes (packed weights,
 * which all runs share), plan_bytes (what each run at the same time needs beside them), and for each node name, op,
 * kernel, dtype, ms (milliseconds), macs (multiply-accumulates) and bytes read and written. Operators that run as one
 * step are one node: "Conv+Add", under the name of the first.
 *
 * @param out the text: qblob_data() ends with a NUL that qblob_size() does not count; free it with qblob_free
 * @param s the session
 * @param inputs as for qsession_run
 * @param input_count as for qsession_run
 * @return QTN_OK, a common error, or one of qsession_run
 * @since 0.1 */
QTN_API qstatus qsession_profile(qblob **out, const qsession *s, const qtensor *const *inputs, size_t input_count);

/** Makes an output of each run the input of the next one: keys and values of a decoder, the state of a recurrent
 * network, samples of audio that are left over. No element is copied for it. Where the shape stays the same, two pieces
 * of memory take turns, and from the third run on none is allocated; where it grows, each run takes new memory, and a
 * new plan as for other inputs of a new shape.
 *
 * A run takes the state where its `inputs` have NULL. The first one takes zeros of the shape which the model declares;
 * a model that leaves dimensions of that input open needs a tensor there. A tensor may be given at any later run too:
 * it stands in the place of the state. What the output has come to is the next state in either case.
 *
 * The tensor that qsession_run gives for a bound output shares its memory with the state. Freed before the next run but
 * one, it costs nothing; held longer, it keeps its values, and the session takes other memory. Writing into it changes
 * what the next run reads. A run that fails leaves the state as it was. qsession_profile reads the state and leaves it.
 *
 * A session with state serves one run at a time, and another thread's run in the meantime gets QTN_ESTATE. Runs that go
 * on side by side, such as those of several streams, take a session each.
 *
 * @param s the session
 * @param output number of the output; it may be bound to several inputs
 * @param input number of the input; one that is bound already takes the new output, and starts from the beginning
 * @return QTN_OK, a common error, or one of these; then the old bindings stay:
 * @retval QTN_EINVAL for an output or an input that the model does not have
 * @retval QTN_EDTYPE where their element types differ
 * @retval QTN_ESHAPE where their shapes cannot be the same
 * @retval QTN_ESTATE while the session runs, where it has state
 * @since 0.1 */
QTN_API qstatus qsession_bind(qsession *s, size_t output, size_t input);

/** Forgets the state of all inputs that are bound: the next run begins as the first one did. They stay bound.
 *
 * @param s the session
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE while the session runs, where it has state
 * @since 0.1 */
QTN_API qstatus qsession_reset(qsession *s);

/** Frees a session, when no thread runs it any more.
 *
 * @param s the handle, or NULL
 * @since 0.1 */
QTN_API void qsession_free(QTN_OPT qsession *s);

/* ---------------------------------------------------------------------------------------------------------------------
 * 9. Trainers
 *
 * Train a float model, or one prepared with QTN_QAT, whose values are rounded to their grids while it is trained, so
 * that it is as good in integers as it was in training:
 *
 *     load -> [prepare with QTN_QAT ->] create -> step, step ... -> qtrainer_model [-> convert] -> save, or a session
 *
 * A step takes a batch: tensors whose first dimension counts samples. */

/** A trainer.
 *
 * Trained are the constant weights and biases of Conv, ConvTranspose, Gemm and MatMul, of an Add behind a Conv or
 * MatMul, tables that Gather reads, scales and offsets of normalizations, slopes of PRelu, and grids where the
 * configuration says that they are learned. Constants of other nodes stay as they are. A weight that a file stores once
 * is one parameter for all nodes that read it; a node that reads it by way of a Transpose, Reshape or Mul of constants
 * trains a copy of its own.
 *
 * @param out the new handle; free it with qtrainer_free
 * @param m a float model, or one that qmodel_prepare made with QTN_QAT, or that qtrainer_model gave: its grids begin as
 *   they were. May be freed afterwards
 * @param attrs loss, optimizer and schedule, and what qtrainer_set can change
 * | key               | type   | default         | meaning
 * |-------------------|--------|-----------------|---------
 * | "loss"            | string | "cross_entropy" | "cross_entropy", "mse", "huber" or "distillation"
 * | "label_smoothing" | float  | 0               | of cross_entropy
 * | "class_axis"      | int    | 1               | of cross_entropy and distillation: the axis of outputs that counts
 * |                   |        |                 | classes, negative counted from the last
 * | "ignore_index"    | int    | none            | of cross_entropy: places with this label do not count
 * | "delta"           | float  | 1               | of huber: where squares become magnitudes
 * | "temperature"     | float  | 1               | of distillation: what outputs are divided by
 * | "alpha"           | float  | none            | of distillation: targets are then the other model's outputs and
 * |                   |        |                 | labels, with the weights alpha and 1 - alpha
 * | "optimizer"       | string | "sgd"           | "sgd", "adam" or "adamw"
 * | "lr"              | float  | 0.001           | the learning rate that the schedule begins with
 * | "momentum"        | float  | 0               | of sgd
 * | "nesterov"        | int    | 0               | of sgd: 1 looks ahead by the momentum
 * | "weight_decay"    | float  | 0               | of adamw 0.01 unless given. Not for biases, normalizations and
 * |                   |        |                 | learned grids
 * | "beta1"           | float  | 0.9             | of adam and adamw
 * | "beta2"           | float  | 0.999           | of adam and adamw
 * | "epsilon"         | float  | 1e-8            | of adam and adamw
 * | "clip_norm"       | float  | none            | largest norm of all gradients together
 * | "clip_value"      | float  | none            | largest magnitude of a gradient's element
 * | "schedule"        | string | "constant"      | "constant", "step" or "cosine"
 * | "total_steps"     | int    | none            | of cosine, which needs it: after so many steps the rate is "min_lr"
 * | "warmup_steps"    | int    | 0               | so many steps lead up to "lr"
 * | "step_size"       | int    | none            | of step, which needs it: after so many steps the rate is multiplied
 * |                   |        |                 | by "gamma"
 * | "gamma"           | float  | 0.1             | of step
 * | "min_lr"          | float  | 0               | of cosine
 * | "seed"            | int    | 0               | of what Dropout drops
 * | "threads"         | int    | 0               | 0: what qlib_set_threads says
 * | qtrainer_set      |        |                 | its options, too
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for another option or value
 * @retval QTN_EUNSUPPORTED for a model that is quantized
 * @retval QTN_ESTATE for a model prepared with QTN_PTQ
 * @since 0.1 */
QTN_API qstatus qtrainer_create(qtrainer **out, const qmodel *m, QTN_OPT const qattrs *attrs);

/** qtrainer_backward, then qtrainer_update.
 *
 * @param out_loss the mean loss of the batch
 * @param t the trainer
 * @param inputs one tensor for each input of the model, in its order
 * @param input_count qmodel_input_count of the model
 * @param targets what the loss compares with: "cross_entropy" wants labels (int64 or int32, of the shape of the output
 *   without its axis of classes: [N, ...] for [N, C, ...]) or distributions (float32, of the shape of the output);
 *   "mse" and "huber" floats of the shape of the output; "distillation" another model's outputs, and, with "alpha",
 *   labels
 * @param target_count how many
 * @return QTN_OK, a common error, or one of qtrainer_backward
 * @since 0.1 */
QTN_API qstatus qtrainer_step(double *out_loss, qtrainer *t, const qtensor *const *inputs, size_t input_count,
                              const qtensor *const *targets, size_t target_count);

/** Gradients of the mean loss of a batch. Called several times before an update, gradients are the mean of the batches:
 * so a batch larger than memory is trained in parts of equal size. Normalizations normalize each part by itself, as in
 * PyTorch.
 *
 * @param out_loss the mean loss of the batch
 * @param t the trainer
 * @param inputs as for qtrainer_step
 * @param input_count as for qtrainer_step
 * @param targets as for qtrainer_step
 * @param target_count as for qtrainer_step
 * @return QTN_OK, a common error, or one of these. The trainer is then as it was before the call, except that gradients
 *   that were not finite are 0 where there was no batch since the last update:
 * @retval QTN_EINVAL for other counts, an empty batch, a label out of range (the message has sample, label and number
 *   of classes), and where the loss, a value that is rounded to a grid or a gradient is NaN or infinite (the message
 *   names the first tensor that is not finite: an input, or where a training has diverged)
 * @retval QTN_ESHAPE for inputs and targets of shapes that do not fit
 * @retval QTN_EDTYPE for inputs and targets of other element types
 * @retval QTN_EUNSUPPORTED for a node without a gradient behind something that is trained
 * @since 0.1 */
QTN_API qstatus qtrainer_backward(double *out_loss, qtrainer *t, const qtensor *const *inputs, size_t input_count,
                                  const qtensor *const *targets, size_t target_count);

/** Moves the parameters by the current gradients, which the caller may have changed (averaged over processes, say), and
 * makes the next qtrainer_backward begin from zero. Running statistics of normalizations move by the mean of those that the
 * batches had since the last update. So processes that each take a part of the samples, average the gradients before
 * an update and the buffers after it, compute what one process does that takes the parts one after the other
 * (docs/training.md).
 *
 * @param t the trainer
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE without a qtrainer_backward since the last update
 * @since 0.1 */
QTN_API qstatus qtrainer_update(qtrainer *t);

/** What the current model answers, bit for bit: that of qtrainer_model in a session, of one prepared with QTN_QAT once
 * converted; in floats before its grids are known, and where "fake_quant" is 0. Changes nothing. The first call after
 * an update makes the session, others find it there.
 *
 * @param outputs receives one new tensor for each output of the model
 * @param output_count qmodel_output_count of the model
 * @param t the trainer
 * @param inputs as for qtrainer_step
 * @param input_count as for qtrainer_step
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for other counts
 * @retval QTN_ESHAPE for inputs of shapes that do not fit
 * @retval QTN_EDTYPE for inputs of other element types
 * @since 0.1 */
QTN_API qstatus qtrainer_evaluate(qtensor **outputs, size_t output_count, qtrainer *t, const qtensor *const *inputs,
                                  size_t input_count);

/** Changes what may change between steps.
 *
 * @param t the trainer
 * @param attrs what to change
 * | key          | type  | default   | meaning
 * |--------------|-------|-----------|---------
 * | "lr"         | float | unchanged | the rate that the schedule begins with
 * | "freeze_bn"  | int   | 0         | 1 normalizes by the running statistics and leaves them as they are
 * | "observers"  | int   | 1         | of models prepared with QTN_QAT: 0 leaves the grids of activations as they are,
 * |              |       |           | which is the default of those that were calibrated
 * | "fake_quant" | int   | 1         | of models prepared with QTN_QAT: 0 rounds nothing
 * @return QTN_OK, a common error, or one of these; then nothing has changed:
 * @retval QTN_EINVAL for another option or value
 * @since 0.1 */
QTN_API qstatus qtrainer_set(qtrainer *t, const qattrs *attrs);

/** Settings of some parameters, at once or between steps. For each setting the most specific selector wins; of equal
 * ones, the last set. Without any, all parameters learn at the optimizer's rate, and biases, normalizations and learned
 * grids have no weight decay. Checkpoints hold no such settings: give a trainer the same before it loads one.
 *
 * @param t the trainer
 * @param selector from the least to the most specific: "*": all parameters; "op:Conv", "name:features.0.*",
 *   "node:conv1": those of nodes, chosen as by qconfig_set, with the learned grids of their weights;
 *   "tensor:relu1.out": those of the learned grid of that activation; "parameter:*.scale": those whose name matches,
 *   `*` standing for any text and `?` for one character. A normalization that is trained is a node of its own
 * @param settings what to change for these parameters
 * | key            | type  | default         | meaning
 * |----------------|-------|-----------------|---------
 * | "lr_factor"    | float | 1               | 0 or more: the learning rate is this times the optimizer's
 * | "weight_decay" | float | the optimizer's | 0 or more: in place of the optimizer's, also where there would be none
 * | "frozen"       | int   | 0               | 1: these parameters do not move; their gradients are not computed but 0,
 * |                |       |                 | and what the optimizer remembers of them stays. Running statistics of
 * |                |       |                 | normalizations are no parameters: see "freeze_bn" of qtrainer_set
 * @return QTN_OK, a common error, or one of these; then nothing has changed:
 * @retval QTN_EINVAL for a selector of another form or that matches no parameter, and for another setting or value
 * @retval QTN_ESTATE between qtrainer_backward and qtrainer_update
 * @since 0.1 */
QTN_API qstatus qtrainer_set_group(qtrainer *t, const char *selector, const qattrs *settings);

/** The number of tensors that are trained.
 *
 * @param t a trainer
 * @return the number of parameters; 0 where `t` is NULL
 * @since 0.1 */
QTN_API size_t qtrainer_parameter_count(const qtrainer *t);

/** The name of a parameter: that of the constant in the model. Lives as long as `t`.
 *
 * Those of a learned grid have the name of the activation or the weight and behind it ".scale", ".zero_point", ".alpha"
 * and ".beta" (the upper and the lower end of the range) or ".amax"; where that is taken, "_2" besides. They are 0
 * until calibration or the first batch has given a grid to begin with. Scales stay at 2^-23 or more, ranges reach over
 * so many of these at least and contain 0 (a beta of 0 stays 0), zero points stay in their type's range: what is beyond
 * is moved back at the next step, and no update takes more than half of a scale, an alpha or an amax. Gradients of
 * scales and zero points have the factor 1 / sqrt(N Q) of LSQ: N weights of a layer, or elements of an activation of
 * one sample; Q steps, of a symmetric grid those above zero.
 *
 * @param t a trainer
 * @param index from 0 to qtrainer_parameter_count(t) - 1
 * @return the name; NULL for an index out of range
 * @since 0.1 */
QTN_API const char *qtrainer_parameter_name(const qtrainer *t, size_t index);

/** A parameter: float32, sharing storage with the trainer, so that what is written to it counts. It stays valid when
 * the trainer is freed.
 *
 * @param out the new handle; free it with qtensor_free
 * @param t the trainer
 * @param index below qtrainer_parameter_count
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for another index
 * @since 0.1 */
QTN_API qstatus qtrainer_parameter(qtensor **out, qtrainer *t, size_t index);

/** The gradient of a parameter, as qtrainer_parameter gives the parameter: 0 before the first qtrainer_backward.
 *
 * @param out the new handle; free it with qtensor_free
 * @param t the trainer
 * @param index below qtrainer_parameter_count
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for another index
 * @since 0.1 */
QTN_API qstatus qtrainer_gradient(qtensor **out, qtrainer *t, size_t index);

/** The number of tensors that are not trained but change with training: the running statistics of normalizations.
 *
 * @param t a trainer
 * @return the number of buffers; 0 where `t` is NULL
 * @since 0.1 */
QTN_API size_t qtrainer_buffer_count(const qtrainer *t);

/** The name of a buffer: that of the node, or of the first one where several share their statistics, and
 * ".running_mean" or ".running_var". Lives as long as `t`.
 *
 * @param t a trainer
 * @param index from 0 to qtrainer_buffer_count(t) - 1
 * @return the name; NULL for an index out of range
 * @since 0.1 */
QTN_API const char *qtrainer_buffer_name(const qtrainer *t, size_t index);

/** A buffer: float32 of one value for each channel, sharing storage with the trainer as qtrainer_parameter's does.
 *
 * @param out the new handle; free it with qtensor_free
 * @param t the trainer
 * @param index below qtrainer_buffer_count
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for another index
 * @since 0.1 */
QTN_API qstatus qtrainer_buffer(qtensor **out, qtrainer *t, size_t index);

/** The model with the parameters, statistics and grids that the trainer has at present.
 *
 * @param out the model: float where the trainer's was; of one prepared with QTN_QAT a prepared one, for qmodel_convert.
 *   Free it with qmodel_free
 * @param t the trainer
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qtrainer_model(qmodel **out, const qtrainer *t);

/** Writes a checkpoint, a safetensors file: parameters, statistics, grids, what the optimizer remembers, and "trainer"
 * (int64 [4]), which is the version of this form, updates and batches so far, and the seed. A trainer that loads it
 * goes on with the same bits as if it had never stopped. The file is complete or not there.
 *
 * @param t the trainer, between an update and the next qtrainer_backward
 * @param path the file; replaced where it exists
 * @return QTN_OK, a common error, or:
 * @retval QTN_EIO where the file cannot be written
 * @retval QTN_ESTATE between qtrainer_backward and qtrainer_update
 * @since 0.1 */
QTN_API qstatus qtrainer_save(const qtrainer *t, const char *path);

/** Goes on where qtrainer_save was called.
 *
 * @param t a trainer of the same model, optimizer and settings
 * @param path the file
 * @return QTN_OK, a common error, or one of these; then the trainer is as it was:
 * @retval QTN_EIO where the file cannot be read
 * @retval QTN_EFORMAT for a file that is no checkpoint
 * @retval QTN_EUNSUPPORTED where another version of the format wrote it
 * @retval QTN_EINVAL for a checkpoint of another model or optimizer
 * @since 0.1 */
QTN_API qstatus qtrainer_load(qtrainer *t, const char *path);

/** The checkpoint that qtrainer_save would write, as bytes.
 *
 * @param out the bytes of a safetensors file; free them with qblob_free
 * @param t the trainer, between an update and the next qtrainer_backward
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESTATE between qtrainer_backward and qtrainer_update
 * @since 0.1 */
QTN_API qstatus qtrainer_save_bytes(qblob **out, const qtrainer *t);

/** Goes on where qtrainer_save_bytes was called, or where the file was written that these bytes were read from.
 *
 * @param t a trainer of the same model, optimizer and settings
 * @param data the bytes
 * @param nbytes how many
 * @return QTN_OK, a common error, or one of these; then the trainer is as it was:
 * @retval QTN_EFORMAT for bytes that are no checkpoint
 * @retval QTN_EUNSUPPORTED where another version of the format wrote it
 * @retval QTN_EINVAL for a checkpoint of another model or optimizer
 * @since 0.1 */
QTN_API qstatus qtrainer_load_bytes(qtrainer *t, const void *data, size_t nbytes);

/** Frees a trainer. Tensors and models that came from it stay.
 *
 * @param t the handle, or NULL
 * @since 0.1 */
QTN_API void qtrainer_free(QTN_OPT qtrainer *t);

/* ---------------------------------------------------------------------------------------------------------------------
 * 10. Blobs
 *
 * Bytes that a function made, of a size that only it knows. */

/** The bytes, followed by a NUL that is not counted, so that text is a C string. They live as long as `b`.
 *
 * @param b a blob
 * @return the first byte; NULL where `b` is NULL
 * @since 0.1 */
QTN_API const void *qblob_data(const qblob *b);

/** The number of bytes.
 *
 * @param b a blob
 * @return the number of bytes; 0 where `b` is NULL
 * @since 0.1 */
QTN_API size_t qblob_size(const qblob *b);

/** Frees a blob.
 *
 * @param b the handle, or NULL
 * @since 0.1 */
QTN_API void qblob_free(QTN_OPT qblob *b);

/* ---------------------------------------------------------------------------------------------------------------------
 * 11. Tensors in files and in other libraries
 *
 * Safetensors files hold tensors by name. Any reader of the format sees a quantized tensor as its integers; the
 * quantizer is in the file's metadata, from which it comes back exactly. NumPy's .npy files hold one tensor that is not
 * quantized. DLPack hands a tensor to another library in the same process, such as NumPy or PyTorch, without a copy.
 *
 * Files are written under a temporary name in the same folder and renamed, so that no half of a file is ever there.
 * They are read with suspicion: what contradicts itself is QTN_EFORMAT. Elements are row-major in files, whatever the
 * strides were. */

/** Writes a safetensors file of one tensor, which gets the name "tensor".
 *
 * @param t the tensor, quantized or not
 * @param path the file; replaced where it exists
 * @return QTN_OK, a common error, or:
 * @retval QTN_EIO where the file cannot be written
 * @since 0.1 */
QTN_API qstatus qtensor_save(const qtensor *t, const char *path);

/** Reads the tensor of a safetensors file that holds one, whatever its name.
 *
 * @param out the new handle, row-major; free it with qtensor_free
 * @param path the file
 * @return QTN_OK, a common error, or:
 * @retval QTN_EIO where the file cannot be read
 * @retval QTN_EFORMAT where it is no valid safetensors file, a tensor has more than 8 dimensions or an element type
 *   that does not exist here
 * @retval QTN_EINVAL where it holds no tensor or several (the message names them)
 * @since 0.1 */
QTN_API qstatus qtensor_load(qtensor **out, const char *path);

/** Writes a safetensors file of any number of tensors.
 *
 * @param path the file; replaced where it exists
 * @param names `count` names, no two alike; not "__metadata__"
 * @param tensors the `count` tensors, quantized or not
 * @param count how many
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for a name that comes twice or is not allowed
 * @retval QTN_EIO where the file cannot be written
 * @since 0.1 */
QTN_API qstatus qtensor_save_all(const char *path, const char *const *names, const qtensor *const *tensors,
                                 size_t count);

/** Reads one tensor of a safetensors file. The elements of others are not read.
 *
 * @param out the new handle, row-major; free it with qtensor_free
 * @param path the file
 * @param name which tensor
 * @return QTN_OK, a common error, one of qtensor_load, or:
 * @retval QTN_EINVAL for a name that is not there (the message has those that are)
 * @since 0.1 */
QTN_API qstatus qtensor_load_named(qtensor **out, const char *path, const char *name);

/** Writes a .npy file, version 1.0, that NumPy reads.
 *
 * @param t a tensor without a quantizer, of a type that NumPy has
 * @param path the file; replaced where it exists
 * @return QTN_OK, a common error, or:
 * @retval QTN_EDTYPE for a quantized tensor (write its integers or its values, or use qtensor_save)
 * @retval QTN_EUNSUPPORTED for bfloat16, float8 and types below 8 bits
 * @retval QTN_EIO where the file cannot be written
 * @since 0.1 */
QTN_API qstatus qtensor_save_npy(const qtensor *t, const char *path);

/** Reads a .npy file of version 1.0 to 3.0. A big-endian one is converted.
 *
 * @param out the new handle; row-major, or with the strides of an array in Fortran order; free it with qtensor_free
 * @param path the file
 * @return QTN_OK, a common error, or:
 * @retval QTN_EIO where the file cannot be read
 * @retval QTN_EFORMAT where it is no valid .npy file of one array, or one with more than 8 dimensions or an element
 *   type that does not exist here
 * @since 0.1 */
QTN_API qstatus qtensor_load_npy(qtensor **out, const char *path);

/** Reads part of a tensor in a file (.npy where its name ends so, else safetensors): t[start:stop] along its first
 * dimension. So data may be larger than memory. A quantizer with scales along that dimension is cut to the same part.
 * An array in Fortran order is read as a whole.
 *
 * @param out the new handle; free it with qtensor_free
 * @param path the file
 * @param name which tensor; NULL: the only one
 * @param start the first index, 0 or more
 * @param stop one past the last index, at most the size of the dimension
 * @return QTN_OK, a common error, one of qtensor_load, qtensor_load_named or qtensor_load_npy, or:
 * @retval QTN_EINVAL for a range that is not there, for a scalar, and for a name where the file is a .npy
 * @since 0.1 */
QTN_API qstatus qtensor_load_rows(qtensor **out, const char *path, QTN_OPT const char *name, int64_t start,
                                  int64_t stop);

/** What is in a file (.npy where its name ends so, else safetensors), as JSON text: "tensors", a list with name ("" in
 * a .npy), dtype, shape and, for quantized ones, scheme. Elements are not read.
 *
 * @param out the text: qblob_data() ends with a NUL that qblob_size() does not count; free it with qblob_free
 * @param path the file
 * @return QTN_OK, a common error, or one of qtensor_load and qtensor_load_npy; any number of tensors is right
 * @since 0.1 */
QTN_API qstatus qtensor_inspect(qblob **out, const char *path);

/* What DLPack hands over, declared here by name only: its own header, dlpack/dlpack.h, defines it. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;

/** Lends a tensor to another library, as DLPack's structure for the device CPU. Storage is shared, and what either
 * library writes the other sees. The storage stays until the consumer has called the structure's deleter, also where
 * `t` is freed before; a structure that is not taken must be given to its deleter by the caller.
 *
 * @param out the structure; belongs to the library that consumes it
 * @param t a tensor without a quantizer, any strides
 * @return QTN_OK, a common error, or:
 * @retval QTN_EDTYPE for a quantized tensor (hand over its integers or its values)
 * @retval QTN_EUNSUPPORTED for types below 8 bits
 * @since 0.1 */
QTN_API qstatus qtensor_to_dlpack(struct DLManagedTensor **out, const qtensor *t);

/** Takes a tensor of another library, without a copy. On success the structure belongs to the tensor, and its deleter
 * is called exactly once: when the last handle that shares the storage is freed, on the thread that frees it. On
 * failure it is untouched and stays the caller's.
 *
 * @param out the new handle, with the strides it came with; free it with qtensor_free
 * @param managed the structure; a consumed PyCapsule must be renamed by the caller, as DLPack says
 * @return QTN_OK, a common error, or:
 * @retval QTN_EUNSUPPORTED for a device other than CPU (1), an element type that does not exist here or has several
 *   lanes or less than 8 bits, or a negative stride
 * @retval QTN_ESHAPE for more than 8 dimensions or a negative one
 * @retval QTN_EINVAL for data that is NULL or not aligned for its type, and for strides that lead out of memory
 * @since 0.1 */
QTN_API qstatus qtensor_from_dlpack(qtensor **out, struct DLManagedTensor *managed);

/** qtensor_to_dlpack for consumers that ask for DLPack 1.
 *
 * @param out the structure, of version 1.0 and writable; belongs to the library that consumes it
 * @param t a tensor without a quantizer, any strides
 * @return QTN_OK, a common error, or one of qtensor_to_dlpack
 * @since 0.1 */
QTN_API qstatus qtensor_to_dlpack_versioned(struct DLManagedTensorVersioned **out, const qtensor *t);

/** qtensor_from_dlpack for what producers of DLPack 1 make.
 *
 * @param out the new handle, with the strides it came with; free it with qtensor_free
 * @param managed the structure
 * @return QTN_OK, a common error, one of qtensor_from_dlpack, or:
 * @retval QTN_EUNSUPPORTED for another major version than 1 and for a tensor that is marked read-only
 * @since 0.1 */
QTN_API qstatus qtensor_from_dlpack_versioned(qtensor **out, struct DLManagedTensorVersioned *managed);

/* ---------------------------------------------------------------------------------------------------------------------
 * 12. Layers
 *
 * One layer whose weights are integers, for programs that run a network themselves, layer by layer, and put such a
 * layer in the place of a float one. It packs its weights once, for the kernels of this CPU, and runs as fast as in a
 * session. A network in a file is better served by section 7, which finds the grids and fuses layers.
 *
 * A layer never changes. Many threads may run one at once. */

/** A layer from its weights.
 *
 *     "linear"          y = x * transpose(weight) + bias, over the last dimension of x: [..., in_features]
 *     "conv1d", "conv2d", "conv3d"
 *                       ONNX Conv of x [N, C_in, sizes ...]
 *     "embedding"       rows of the weights: for x of any shape, the row x[i] in the place of each index
 *     "embedding_bag"   for x [bags, n], the sum or the mean of the n rows of each bag
 *
 * Results have the bits of qop_linear and qop_conv2d for the same operands. Weights that are given in float32 become
 * the integers and scales that qmodel_convert would make of them, except that no bias makes a scale larger.
 *
 * @param out the new handle; free it with qlayer_free
 * @param kind one of these
 * @param weight of linear [out_features, in_features]; of convolutions [C_out, C_in / group, kernel ...]; of embeddings
 *   [rows, width]. float32, or quantized to 8 bits or fewer, per tensor or per channel along axis 0, and then taken as
 *   it is. Copied
 * @param bias float32 [out_features] or [C_out], copied; NULL: none. Embeddings have none
 * @param config how a float32 weight is quantized: what the configuration says of the weights of "op:Gemm" (linear),
 *   "op:Conv", or of all nodes (embeddings). For a linear layer that quantizes x at each run also its "numerics" and
 *   "reduce_range". May be freed afterwards; NULL where `weight` is quantized
 * @param x_quantizer the grid that a float32 x is rounded to before it meets the weights: uint8 or int8, per tensor.
 *   NULL: such an x gets a grid from its own range at each run (linear, as qop_linear), or stays in float and meets
 *   dequantized weights (convolutions). NULL for embeddings
 * @param out_quantizer the grid of the results: uint8 or int8, per tensor. NULL: results are float32
 * @param attrs of convolutions those of ONNX Conv, of "embedding_bag" the last
 * | key            | type   | default       | meaning
 * |----------------|--------|---------------|---------
 * | "strides"      | ints   | 1s            | steps of the kernel along each dimension
 * | "pads"         | ints   | 0s            | rows and columns of zeros: all begins, then all ends (of images top,
 * |                |        |               | left, bottom, right)
 * | "dilations"    | ints   | 1s            | distances between the taps of the kernel
 * | "kernel_shape" | ints   | of the weight | sizes of the kernel
 * | "group"        | int    | 1             | how many groups the channels are divided into
 * | "auto_pad"     | string | "NOTSET"      | "SAME_UPPER", "SAME_LOWER" or "VALID" instead of "pads"
 * | "mode"         | string | "sum"         | "sum" or "mean" of the rows of a bag
 * @return QTN_OK, a common error, or:
 * @retval QTN_EINVAL for an unknown kind or attribute, for a bias, x_quantizer or out_quantizer that the kind does not
 *   take, for a float32 weight without `config` or that is NaN or infinite
 * @retval QTN_ESHAPE for a weight of another rank or a bias of another length
 * @retval QTN_EDTYPE for other element types or schemes
 * @retval QTN_EUNSUPPORTED where `config` leaves such layers in float or wants weights in blocks
 * @since 0.1 */
QTN_API qstatus qlayer_create(qlayer **out, const char *kind, const qtensor *weight, QTN_OPT const qtensor *bias,
                              QTN_OPT const qconfig *config, QTN_OPT const qquantizer *x_quantizer,
                              QTN_OPT const qquantizer *out_quantizer, QTN_OPT const qattrs *attrs);

/** Runs a layer. The first run with a shape of x, or with x on a grid that the layer has not met, makes ready for it
 * and keeps that: of shapes the last 8, of grids besides x_quantizer the last 8. Later runs on x quantized to uint8 or
 * int8 allocate nothing but their result.
 *
 * @param out the result, row-major: quantized by out_quantizer, or float32
 * @param layer a layer
 * @param x float32, or quantized per tensor to uint8 or int8, on any grid, whatever x_quantizer is; of embeddings int64
 *   or int32, from 0 to rows - 1. Any strides
 * @return QTN_OK, a common error, or:
 * @retval QTN_ESHAPE for an `x` of a shape that does not fit
 * @retval QTN_EDTYPE for an `x` of another type or scheme
 * @retval QTN_EINVAL for an index that is out of range, and for an `x` with NaN or infinity that gets its grid from its
 *   own range
 * @since 0.1 */
QTN_API qstatus qlayer_run(qtensor **out, const qlayer *layer, const qtensor *x);

/** The weights as integers with their quantizer: qtensor_int_repr, qtensor_quantizer and qtensor_dequantize give
 * integers, scales and reals.
 *
 * @param out a copy, of the shape of the weight that the layer was made of; free it with qtensor_free
 * @param layer a layer
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qlayer_weight(qtensor **out, const qlayer *layer);

/** The bias, in float32.
 *
 * @param out a copy; free it with qtensor_free. NULL, with QTN_OK, where the layer has none
 * @param layer a layer
 * @return QTN_OK or a common error
 * @since 0.1 */
QTN_API qstatus qlayer_bias(qtensor **out, const qlayer *layer);

/** Frees a layer, when no thread runs it any more. Tensors that came from it stay.
 *
 * @param layer the handle, or NULL
 * @since 0.1 */
QTN_API void qlayer_free(QTN_OPT qlayer *layer);

#endif /* QTENSOR_QTENSOR_H */
