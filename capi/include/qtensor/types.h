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
typedef enum qstatus {
  QTN_OK = 0,
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
typedef enum qdtype {
  QTN_FLOAT32 = 1,
  QTN_UINT8 = 2,
  QTN_INT8 = 3,
  QTN_UINT16 = 4,
  QTN_INT16 = 5,
  QTN_INT32 = 6,
  QTN_INT64 = 7,
  QTN_BOOL = 9,
  QTN_FLOAT16 = 10,
  QTN_FLOAT64 = 11,
  QTN_BFLOAT16 = 16,
  QTN_FLOAT8E4M3FN = 17,
  QTN_FLOAT8E5M2 = 19,
  QTN_UINT4 = 21,
  QTN_INT4 = 22,
  QTN_UINT2 = 25,
  QTN_INT2 = 26,
  QTN_DTYPE_FORCE32 = 0x7fffffff
} qdtype;

/** Which elements share a scale and zero point. "Symmetric" schemes have zero_point 0 (128 for uint8). Zero points are
 * integers, but for "float qparams", PyTorch's scheme for the weights of embeddings. */
typedef enum qscheme {
  QTN_PER_TENSOR_AFFINE = 0,
  QTN_PER_TENSOR_SYMMETRIC = 1,
  QTN_PER_CHANNEL_AFFINE = 2,
  QTN_PER_CHANNEL_SYMMETRIC = 3,
  QTN_PER_BLOCK_AFFINE = 4,
  QTN_PER_BLOCK_SYMMETRIC = 5,
  QTN_PER_CHANNEL_AFFINE_FLOAT_QPARAMS = 6,
  QTN_SCHEME_FORCE32 = 0x7fffffff
} qscheme;

/** How a model is prepared: observers only (post-training quantization) or trainable fake-quantization. */
typedef enum qmode { QTN_PTQ = 0, QTN_QAT = 1, QTN_MODE_FORCE32 = 0x7fffffff } qmode;

/** Called exactly once when wrapped memory is no longer used. `data` and `ctx` are what qtensor_wrap was given. */
typedef void (*qtensor_deleter)(void *data, void *ctx);

/** Gives a sample of qmodel_quantize, which may ask for any, in any order and more than once: sets `inputs[0]` to
 * `inputs[input_count - 1]`, one for each input of the model in its order, to handles that now belong to the library
 * (qtensor_share makes one of a tensor that the caller keeps). Returns QTN_OK; any other status ends qmodel_quantize
 * with it, QTN_ECANCELED to cancel. Handles that were set are freed then, too. */
typedef qstatus (*qmodel_sample)(qtensor **inputs, size_t input_count, size_t index, void *ctx);

/** Told that `done` of `total` pieces of work are done, of the kind that `stage` names ("calibrating"). Returns 0 to go
 * on; anything else cancels. */
typedef int (*qmodel_progress)(const char *stage, size_t done, size_t total, void *ctx);

/** Gives a batch of qmodel_quantize_qat, which asks for batches 0 to batch_count - 1 of epoch 0, 1 ..., and before for
 * some of epoch 0 to calibrate with. Sets inputs and targets (of qtrainer_step) to handles that now belong to the
 * library. Which samples are in a batch may change from epoch to epoch. Returns QTN_OK; any other status ends
 * qmodel_quantize_qat with it. Handles that were set are freed then, too. */
typedef qstatus (*qmodel_batch)(qtensor **inputs, size_t input_count, qtensor **targets, size_t target_count,
                                size_t epoch, size_t index, void *ctx);

/** Told after a piece of work: `stage` is "calibrating" or "training", of which `done` of `total` batches are done, and
 * `loss` that of the last step (NaN while calibrating). Returns 0 to go on. 1 ends the training there: what has been
 * learned is converted. Anything else, and 1 while calibrating, cancels. */
typedef int (*qmodel_training)(const char *stage, size_t done, size_t total, double loss, void *ctx);

#endif /* QTENSOR_TYPES_H */
