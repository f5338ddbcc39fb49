/* SPDX-License-Identifier: Apache-2.0
 *
 * qtensor/types.h: macros, opaque handles and enumerations shared by every other header. Each name is defined here
 * once. */
#ifndef QTENSOR_TYPES_H
#define QTENSOR_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define QTN_EXTERN extern "C"
#else
#define QTN_EXTERN extern
#endif

/** Marks an exported function. QTN_STATIC is for building the static library, which exports nothing. */
#if defined(__GNUC__) && defined(QTN_STATIC)
#define QTN_API QTN_EXTERN __attribute__((visibility("hidden")))
#elif defined(__GNUC__)
#define QTN_API QTN_EXTERN __attribute__((visibility("default")))
#else
#define QTN_API QTN_EXTERN
#endif

/** Marks the only pointer parameters that may be NULL. Any other NULL is QTN_EINVAL and the message names the
 * parameter. */
#define QTN_OPT

/** What an enumeration is stored in: in C++ too any int is a value of it, so that a wrong number is refused instead of
 * being undefined. */
#ifdef __cplusplus
#define QTN_INT : int
#else
#define QTN_INT
#endif

/* Handles. Each `create` (or other function that fills `**out`) pairs with exactly one `free`; `free(NULL)` does
 * nothing. A const handle may be used from many threads at once; a non-const one needs exclusive access. */
typedef struct qtensor qtensor; /**< n-dimensional array: dtype + shape + strides + storage + optional quantizer */
typedef struct qquantizer qquantizer; /**< immutable mapping real = (q - zero_point) * scale */
typedef struct qobserver qobserver;   /**< streaming statistics of a tensor, from which a quantizer is chosen */
typedef struct qconfig qconfig;       /**< which observer and quantizer go where in a model ("qconfig") */
typedef struct qattrs qattrs;         /**< named options: string key -> int, float, string, ints, floats */
typedef struct qmodel qmodel;         /**< a graph of ONNX operators with its weights */
typedef struct qsession qsession;     /**< a model packed, planned and ready to run */
typedef struct qtrainer qtrainer;     /**< a model being trained, with its optimizer */
typedef struct qlayer qlayer;         /**< one layer with weights in integers, packed and ready to run */
typedef struct qblob qblob;           /**< a run of bytes owned by the library */

/** What a fallible function returns. Numbers are fixed; new ones are only appended. */
typedef enum qstatus QTN_INT {
  QTN_OK = 0,           /**< done as asked */
  QTN_EINVAL = 1,       /**< an argument is NULL, out of range, or unknown */
  QTN_ESHAPE = 2,       /**< shapes do not fit together */
  QTN_EDTYPE = 3,       /**< element type or quantization not accepted here */
  QTN_ENOMEM = 4,       /**< out of memory; objects are unchanged */
  QTN_EIO = 5,          /**< a file could not be read or written */
  QTN_EFORMAT = 6,      /**< bytes are not a valid file of their kind */
  QTN_EUNSUPPORTED = 7, /**< valid, but not offered by this version */
  QTN_ESTATE = 8,       /**< called at the wrong time (convert before calibrate ...) */
  QTN_EINTERNAL = 9,    /**< a defect of the library */
  QTN_ECANCELED = 10,   /**< a callback asked to stop */
  QTN_STATUS_FORCE32 = 0x7fffffff
} qstatus;

/** Element types; the numbers are those of onnx.TensorProto.DataType. */
typedef enum qdtype QTN_INT {
  QTN_FLOAT32 = 1,        /**< 32-bit float of IEEE 754: the working type of networks that are not quantized */
  QTN_UINT8 = 2,          /**< unsigned integer of 8 bits */
  QTN_INT8 = 3,           /**< signed integer of 8 bits */
  QTN_UINT16 = 4,         /**< unsigned integer of 16 bits */
  QTN_INT16 = 5,          /**< signed integer of 16 bits */
  QTN_INT32 = 6,          /**< signed integer of 32 bits: exact sums, biases */
  QTN_INT64 = 7,          /**< signed integer of 64 bits: shapes, indices, labels */
  QTN_BOOL = 9,           /**< true or false in one byte, 1 or 0 */
  QTN_FLOAT16 = 10,       /**< 16-bit float of IEEE 754: stored and converted, not computed with */
  QTN_FLOAT64 = 11,       /**< 64-bit float of IEEE 754 */
  QTN_UINT32 = 12,        /**< unsigned integer of 32 bits */
  QTN_UINT64 = 13,        /**< unsigned integer of 64 bits */
  QTN_BFLOAT16 = 16,      /**< the upper 16 bits of a float32: stored and converted, not computed with */
  QTN_FLOAT8E4M3FN = 17,  /**< 8-bit float with 4 bits of exponent and 3 of mantissa, without infinities */
  QTN_FLOAT8E4M3FNUZ = 18,/**< the same with exponents one lower, and without -0 */
  QTN_FLOAT8E5M2 = 19,    /**< 8-bit float with 5 bits of exponent and 2 of mantissa */
  QTN_FLOAT8E5M2FNUZ = 20,/**< the same with exponents one lower, without infinities and -0 */
  QTN_UINT4 = 21,         /**< unsigned integer of 4 bits, two in a byte, the first in the lower bits */
  QTN_INT4 = 22,          /**< signed integer of 4 bits, two in a byte, the first in the lower bits */
  QTN_FLOAT4E2M1 = 23,    /**< 0, 0.5, 1, 1.5, 2, 3, 4, 6 and a sign in 4 bits, two in a byte as of QTN_INT4 */
  QTN_FLOAT8E8M0 = 24,    /**< a power of two from 2^-127 to 2^127 in 8 bits, or NaN: scales of blocks */
  QTN_UINT2 = 25,         /**< unsigned integer of 2 bits, four in a byte, the first in the lowest bits */
  QTN_INT2 = 26,          /**< signed integer of 2 bits, four in a byte, the first in the lowest bits */
  QTN_DTYPE_FORCE32 = 0x7fffffff
} qdtype;

/** Which elements share a scale and zero point. "Symmetric" schemes have zero_point 0 (128 for uint8). Zero points are
 * integers, except those of "float qparams", PyTorch's scheme for the weights of embeddings. */
typedef enum qscheme QTN_INT {
  QTN_PER_TENSOR_AFFINE = 0,                /**< one scale and zero point for the tensor */
  QTN_PER_TENSOR_SYMMETRIC = 1,             /**< one scale for the tensor, the zero point is fixed */
  QTN_PER_CHANNEL_AFFINE = 2,               /**< a scale and zero point for each index along the axis */
  QTN_PER_CHANNEL_SYMMETRIC = 3,            /**< a scale for each index along the axis, zero points are fixed */
  QTN_PER_BLOCK_AFFINE = 4,                 /**< a scale and zero point for each run of elements along the axis */
  QTN_PER_BLOCK_SYMMETRIC = 5,              /**< a scale for each run of elements along the axis */
  QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS = 6, /**< per channel, with zero points that are floats */
  QTN_SCHEME_FORCE32 = 0x7fffffff
} qscheme;

/** What a model is prepared for. */
typedef enum qmode QTN_INT {
  QTN_PTQ = 0, /**< post-training quantization: observers only */
  QTN_QAT = 1, /**< quantization-aware training: trainable fake quantization */
  QTN_MODE_FORCE32 = 0x7fffffff
} qmode;

/** What a callback that is told of progress answers. Any number that is not listed here counts as QTN_CANCEL. */
typedef enum qanswer QTN_INT {
  QTN_CONTINUE = 0, /**< go on */
  QTN_STOP = 1,     /**< end here and keep what has been done; where nothing could be kept, the same as QTN_CANCEL */
  QTN_CANCEL = 2,   /**< give up: the call that is under way fails with QTN_ECANCELED */
  QTN_ANSWER_FORCE32 = 0x7fffffff
} qanswer;

/** Called exactly once, when wrapped memory is no longer used.
 *
 * @param data the memory that qtensor_wrap was given
 * @param ctx the context that qtensor_wrap was given */
typedef void (*qtensor_deleter_cb)(void *data, void *ctx);

/** @deprecated The first name of qtensor_deleter_cb, which stays until 1.0. */
typedef qtensor_deleter_cb qtensor_deleter;

/** Gives a sample of qmodel_quantize, which may ask for any, in any order and more than once.
 *
 * @param inputs to be set to `input_count` handles, one for each input of the model in its order, which then belong to
 *   the library (qtensor_share makes one of a tensor that the caller keeps). They are freed where this fails, too
 * @param input_count the number of inputs of the model
 * @param index which sample, from 0 to sample_count - 1
 * @param ctx the context that qmodel_quantize was given
 * @return QTN_OK. Any other status ends qmodel_quantize with it: QTN_ECANCELED cancels */
typedef qstatus (*qmodel_sample_cb)(qtensor **inputs, size_t input_count, size_t index, void *ctx);

/** Told how far qmodel_quantize is.
 *
 * @param stage the kind of work, such as "calibrating"
 * @param done how many pieces of it are done
 * @param total how many pieces of it there are
 * @param ctx the context that qmodel_quantize was given
 * @return QTN_CONTINUE to go on. Anything else cancels */
typedef qanswer (*qmodel_progress_cb)(const char *stage, size_t done, size_t total, void *ctx);

/** Gives a batch of qmodel_quantize_qat, which asks for batches 0 to batch_count - 1 of epoch 0, 1 ..., and before for
 * some of epoch 0 to calibrate with. Which samples are in a batch may change from epoch to epoch.
 *
 * @param inputs to be set to `input_count` handles, which then belong to the library, as for qmodel_sample_cb
 * @param input_count the number of inputs of the model
 * @param targets to be set to `target_count` handles, which then belong to the library: those of qtrainer_step
 * @param target_count the number of targets that qmodel_quantize_qat was given
 * @param epoch which epoch, from 0
 * @param index which batch of it, from 0 to batch_count - 1
 * @param ctx the context that qmodel_quantize_qat was given
 * @return QTN_OK. Any other status ends qmodel_quantize_qat with it */
typedef qstatus (*qmodel_batch_cb)(qtensor **inputs, size_t input_count, qtensor **targets, size_t target_count,
                                   size_t epoch, size_t index, void *ctx);

/** Told how far qmodel_quantize_qat is, after each piece of work.
 *
 * @param stage "calibrating" or "training"
 * @param done how many batches of it are done
 * @param total how many batches of it there are
 * @param loss the loss of the last step; NaN while calibrating
 * @param ctx the context that qmodel_quantize_qat was given
 * @return QTN_CONTINUE to go on. QTN_STOP ends the training there: what has been learned is converted. Anything else,
 *   and QTN_STOP while calibrating, cancels */
typedef qanswer (*qmodel_training_cb)(const char *stage, size_t done, size_t total, double loss, void *ctx);

#endif /* QTENSOR_TYPES_H */
