// SPDX-License-Identifier: Apache-2.0
// Each step of a model's life with the n-th allocation failing, for n = 1, 2, ... until the step needs no n-th: every
// failure is QTN_ENOMEM, leaks nothing, and leaves the objects usable.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "failing_new.h"
#include "qtensor/qtensor.h"
#include "tiny_model.h"

namespace {

int faults = 0;

void fault(const char *step, long n, const char *what) {
  if (++faults <= 20) std::fprintf(stderr, "%s, allocation %ld: %s (%s)\n", step, n, what, qerror_message());
}

/// One call of the library, and how to undo it where it is to be repeated. nullptr: it changes an object, which may
/// come to hold more or less memory where the call does without an allocation that failed (a stream in a message, a
/// cache).
struct Step {
  const char *name;
  std::function<qstatus()> call;
  std::function<void()> undo;
};

/// Fails every allocation of a step in turn, then lets it succeed.
void exhaust(const Step &step) {
  long n = 1;
  for (;; ++n) {
    const long before = live_allocations();
    fail_new(n);
    const qstatus status = step.call();
    if (!stop_failing_new()) {
      if (status != QTN_OK) fault(step.name, n, "fails without a failing allocation");
      break;
    }
    if (status == QTN_OK) {  // it could do without this one
      if (!step.undo) continue;
      step.undo();
    } else if (status != QTN_ENOMEM) {
      fault(step.name, n, qstatus_name(status));
    } else if (!std::strstr(qerror_message(), "memory")) {
      fault(step.name, n, "message");
    }
    if (live_allocations() > before) fault(step.name, n, "leaks");
    if (live_allocations() < before) fault(step.name, n, "frees what it did not make");
  }
  std::printf("%-20s %6ld allocations\n", step.name, n - 1);
}

qtensor *sample(int i) {
  float values[TINY_INPUTS];
  tiny_sample(values, i);
  const int64_t shape[] = {1, 1, 6, 6};
  qtensor *x = nullptr;
  qtensor_create(&x, QTN_FLOAT32, shape, 4, nullptr, values, sizeof values);
  return x;
}

std::string contents(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
std::function<void()> freed(T *&handle, void (*free)(T *)) {
  return [&handle, free] {
    free(handle);
    handle = nullptr;
  };
}

using Runner = std::function<void(const Step &)>;

void models(const Runner &run, const char *path, const char *recipe) {
  tiny_model bytes;
  tiny_model_make(&bytes);
  qmodel *model = nullptr, *prepared = nullptr, *int8 = nullptr, *loaded = nullptr;
  qconfig *config = nullptr;
  qsession *session = nullptr;
  qblob *text = nullptr;
  qtensor *x = sample(1), *y = nullptr;
  run({"qmodel_load_bytes", [&] { return qmodel_load_bytes(&model, bytes.data, bytes.size); },
       freed(model, qmodel_free)});
  run({"qconfig_create", [&] { return qconfig_create(&config, recipe); }, freed(config, qconfig_free)});
  run({"qconfig_set", [&] { return qconfig_set(config, "op:Softmax", nullptr); }, nullptr});
  run({"qmodel_prepare", [&] { return qmodel_prepare(&prepared, model, config, QTN_PTQ); },
       freed(prepared, qmodel_free)});
  // What a prepared model keeps to run samples is freed with it, so each call gets a new one.
  run({"qmodel_calibrate",
       [&] {
         const long remaining = pause_failing_new();
         qmodel *fresh = nullptr;
         qmodel_prepare(&fresh, model, config, QTN_PTQ);
         go_on_failing_new(remaining);
         const qstatus status = qmodel_calibrate(fresh, &x, 1);
         (void)pause_failing_new();
         qmodel_free(fresh);
         return status;
       },
       nullptr});
  qmodel_calibrate(prepared, &x, 1);
  run({"qmodel_save_calibration", [&] { return qmodel_save_calibration(prepared, path); }, nullptr});
  run({"qmodel_load_calibration", [&] { return qmodel_load_calibration(prepared, path); }, nullptr});
  run({"qmodel_merge_calibrations", [&] { return qmodel_merge_calibrations(path, &path, 1); }, nullptr});
  run({"qmodel_convert", [&] { return qmodel_convert(&int8, prepared, nullptr); }, freed(int8, qmodel_free)});
  run({"qmodel_quantize_dynamic", [&] { return qmodel_quantize_dynamic(&loaded, model, config, nullptr); },
       freed(loaded, qmodel_free)});
  qmodel_free(loaded);
  run({"qmodel_quantize_weights", [&] { return qmodel_quantize_weights(&loaded, model, nullptr); },
       freed(loaded, qmodel_free)});
  qmodel_free(loaded);
  run({"qmodel_inspect", [&] { return qmodel_inspect(&text, int8); }, freed(text, qblob_free)});
  qblob_free(text);
  run({"qmodel_save", [&] { return qmodel_save(int8, path, nullptr); }, nullptr});
  run({"qmodel_load", [&] { return qmodel_load(&loaded, path); }, freed(loaded, qmodel_free)});
  run({"qsession_create", [&] { return qsession_create(&session, int8, nullptr); }, freed(session, qsession_free)});
  // What a session keeps of its first run is freed with it, so each call gets a new session.
  run({"qsession_run, first",
       [&] {
         const long remaining = pause_failing_new();
         qsession *fresh = nullptr;
         qsession_create(&fresh, int8, nullptr);
         go_on_failing_new(remaining);
         const qstatus status = qsession_run(&y, 1, fresh, &x, 1);
         (void)pause_failing_new();
         qsession_free(fresh);
         return status;
       },
       freed(y, qtensor_free)});
  qtensor_free(y);
  run({"qsession_profile",
       [&] {
         const long remaining = pause_failing_new();
         qsession *fresh = nullptr;
         qsession_create(&fresh, int8, nullptr);
         go_on_failing_new(remaining);
         const qstatus status = qsession_profile(&text, fresh, &x, 1);
         (void)pause_failing_new();
         qsession_free(fresh);
         return status;
       },
       freed(text, qblob_free)});
  qblob_free(text);
  run({"qsession_run, float",
       [&] {
         const long remaining = pause_failing_new();
         qsession *fresh = nullptr;
         qsession_create(&fresh, model, nullptr);
         go_on_failing_new(remaining);
         const qstatus status = qsession_run(&y, 1, fresh, &x, 1);
         (void)pause_failing_new();
         qsession_free(fresh);
         return status;
       },
       freed(y, qtensor_free)});
  qtensor_free(x);
  qtensor_free(y);
  qsession_free(session);
  qmodel_free(model);
  qmodel_free(prepared);
  qmodel_free(int8);
  qmodel_free(loaded);
  qconfig_free(config);
}

void layers(const Runner &run) {
  const int64_t shape[] = {3, 1, 3, 3};
  const double scale = 0.1;
  qtensor *weight = nullptr, *x = sample(1), *q = nullptr, *y = nullptr;
  qquantizer *grid = nullptr;
  qconfig *config = nullptr;
  qlayer *layer = nullptr;
  qblob *text = nullptr;
  qtensor_create(&weight, QTN_FLOAT32, shape, 4, nullptr, nullptr, 0);
  qquantizer_create(&grid, QTN_INT8, QTN_PER_TENSOR_AFFINE, 0, &scale, nullptr, 1, nullptr);
  qtensor_quantize(&q, x, grid);
  qconfig_create(&config, "onnx");
  const auto create = [&](qlayer **out) {
    return qlayer_create(out, "conv2d", weight, nullptr, config, nullptr, grid, nullptr);
  };
  run({"qlayer_create", [&] { return create(&layer); }, freed(layer, qlayer_free)});
  run({"qlayer_weight", [&] { return qlayer_weight(&y, layer); }, freed(y, qtensor_free)});
  qtensor_free(y);
  // What a layer keeps of its first run is freed with it, so each call gets a new layer.
  for (const qtensor *operand : {x, q}) {
    run({"qlayer_run, first",
         [&] {
           const long remaining = pause_failing_new();
           qlayer *fresh = nullptr;
           create(&fresh);
           go_on_failing_new(remaining);
           const qstatus status = qlayer_run(&y, fresh, operand);
           (void)pause_failing_new();
           qlayer_free(fresh);
           return status;
         },
         freed(y, qtensor_free)});
    qtensor_free(y);
  }
  run({"qreport_summary",
       [&] {
         return qreport_summary(
             &text,
             "{\"samples\": 1, \"nodes\": {\"all\": 3, \"int8\": 2}, \"trials\": "
             "[{\"name\": \"a name that no short text holds\", \"sqnr_db\": 30.5, \"kept\": true}]}");
       },
       freed(text, qblob_free)});
  qblob_free(text);
  qtensor_free(weight);
  qtensor_free(x);
  qtensor_free(q);
  qquantizer_free(grid);
  qconfig_free(config);
  qlayer_free(layer);
}

/// The tensors of `ctx`: an input and a target. The program's own memory does not end.
qstatus give_batch(qtensor **inputs, size_t, qtensor **targets, size_t, size_t, size_t, void *ctx) {
  auto *const *tensors = static_cast<qtensor *const *>(ctx);
  const long remaining = pause_failing_new();
  qtensor_share(inputs, tensors[0]);
  qtensor_share(targets, tensors[1]);
  go_on_failing_new(remaining);
  return QTN_OK;
}

/// A trainer whose steps failed has learned what one has whose steps did not.
void trainers(const Runner &run, const std::string &path, const char *recipe, const char *optimizer) {
  tiny_model bytes;
  tiny_model_make_deep(&bytes, "Relu", "Dropout");
  qmodel *model = nullptr, *prepared = nullptr, *trained = nullptr, *int8 = nullptr;
  qconfig *config = nullptr;
  qattrs *attrs = nullptr;
  qtrainer *t = nullptr, *other = nullptr;
  qtensor *x = sample(1), *label = nullptr, *y = nullptr;
  const int64_t shape[] = {1}, one[] = {1};
  double loss = 0;
  qmodel_load_bytes(&model, bytes.data, bytes.size);
  if (recipe) {
    qconfig_create(&config, recipe);
    qmodel_prepare(&prepared, model, config, QTN_QAT);
  }
  const qmodel *subject = recipe ? prepared : model;
  qtensor_create(&label, QTN_INT64, shape, 1, nullptr, one, sizeof one);
  qattrs_create(&attrs);
  qattrs_set_string(attrs, "optimizer", optimizer);
  qattrs_set_float(attrs, "weight_decay", 0.01);
  qattrs_set_float(attrs, "clip_norm", 1);
  const auto step = [&](qtrainer *trainer) { return qtrainer_step(&loss, trainer, &x, 1, &label, 1); };
  // What a trainer keeps of its first run is freed with it, so each call gets a new one.
  const auto anew = [&](const auto &call) {
    const long remaining = pause_failing_new();
    qtrainer *fresh = nullptr;
    qtrainer_create(&fresh, subject, attrs);
    go_on_failing_new(remaining);
    const qstatus status = call(fresh);
    (void)pause_failing_new();
    qtrainer_free(fresh);
    return status;
  };
  run({"qtrainer_create", [&] { return qtrainer_create(&t, subject, attrs); }, freed(t, qtrainer_free)});
  run({"qtrainer_step, first", [&] { return anew(step); }, nullptr});
  qtrainer_create(&other, subject, attrs);
  for (qtrainer *trainer : {t, other}) step(trainer);
  run({"qtrainer_step, later", [&] { return step(t); }, nullptr});
  step(other);
  run({"qtrainer_backward",
       [&] {
         return anew([&](qtrainer *fresh) {
           const qstatus status = qtrainer_backward(&loss, fresh, &x, 1, &label, 1);
           return status == QTN_OK ? qtrainer_backward(&loss, fresh, &x, 1, &label, 1) : status;
         });
       },
       nullptr});
  // With two batches: the optimizer's state, and the mean of gradients.
  run({"qtrainer_update",
       [&] {
         return anew([&](qtrainer *fresh) {
           const long remaining = pause_failing_new();
           for (int i = 0; i < 2; ++i) qtrainer_backward(&loss, fresh, &x, 1, &label, 1);
           go_on_failing_new(remaining);
           return qtrainer_update(fresh);
         });
       },
       nullptr});
  run({"qtrainer_evaluate",
       [&] { return anew([&](qtrainer *fresh) { return qtrainer_evaluate(&y, 1, fresh, &x, 1); }); },
       freed(y, qtensor_free)});
  run({"qtrainer_model", [&] { return qtrainer_model(&trained, t); }, freed(trained, qmodel_free)});
  run({"qtrainer_save", [&] { return qtrainer_save(t, path.c_str()); }, nullptr});
  const std::string learned = contents(path);
  qtrainer_save(other, path.c_str());
  if (learned != contents(path)) fault("qtrainer_step", 0, "learns otherwise after a failure");
  run({"qtrainer_load", [&] { return qtrainer_load(t, path.c_str()); }, nullptr});
  std::remove(path.c_str());
  if (recipe) {
    qtensor *batch[] = {x, label};
    const auto in_one_call = [&] {
      return qmodel_quantize_qat(&int8, nullptr, model, config, give_batch, 1, 1, nullptr, nullptr, batch);
    };
    run({"qmodel_quantize_qat", in_one_call, freed(int8, qmodel_free)});
  }
  for (qtensor *tensor : {x, label, y}) qtensor_free(tensor);
  for (qmodel *m : {model, prepared, trained, int8}) qmodel_free(m);
  for (qtrainer *trainer : {t, other}) qtrainer_free(trainer);
  qconfig_free(config);
  qattrs_free(attrs);
}

void tensors(const Runner &run) {
  qtensor *x = sample(1), *q = nullptr, *y = nullptr, *view = nullptr, *w = nullptr;
  qquantizer *grid = nullptr, *chosen = nullptr;
  qattrs *attrs = nullptr;
  qobserver *observer = nullptr, *loaded = nullptr;
  qblob *blob = nullptr;
  const double scale = 0.01;
  const int64_t zero = 100, shape[] = {6, 6};
  const int32_t axes[] = {3, 2, 1, 0};
  char text[2000];
  size_t length = 0;
  run({"qattrs_create", [&] { return qattrs_create(&attrs); }, freed(attrs, qattrs_free)});
  run({"qattrs_set_string", [&] { return qattrs_set_string(attrs, "numerics", "onnx"); }, nullptr});
  run({"qquantizer_create",
       [&] { return qquantizer_create(&grid, QTN_UINT8, QTN_PER_TENSOR_AFFINE, 0, &scale, &zero, 1, attrs); },
       freed(grid, qquantizer_free)});
  run({"qtensor_quantize", [&] { return qtensor_quantize(&q, x, grid); }, freed(q, qtensor_free)});
  run({"qtensor_dequantize", [&] { return qtensor_dequantize(&y, q); }, freed(y, qtensor_free)});
  qtensor_free(y);
  run({"qtensor_permute", [&] { return qtensor_permute(&view, q, axes, 4); }, freed(view, qtensor_free)});
  run({"qtensor_contiguous", [&] { return qtensor_contiguous(&y, view); }, freed(y, qtensor_free)});
  qtensor_free(y);
  run({"qtensor_copy", [&] { return qtensor_copy(q, x); }, nullptr});
  run({"qtensor_describe", [&] { return qtensor_describe(text, sizeof text, &length, q); }, nullptr});
  run({"qtensor_create", [&] { return qtensor_create(&w, QTN_UINT8, shape, 2, grid, nullptr, 0); },
       freed(w, qtensor_free)});
  run({"qop_linear", [&] { return qop_linear(&y, x, w, nullptr, nullptr); }, freed(y, qtensor_free)});
  qtensor_free(y);
  run({"qop_run", [&] { return qop_run(&y, 1, "Relu", &x, 1, nullptr); }, freed(y, qtensor_free)});
  run({"qobserver_create", [&] { return qobserver_create(&observer, "mse", nullptr); },
       freed(observer, qobserver_free)});
  run({"qobserver_observe", [&] { return qobserver_observe(observer, x); }, nullptr});
  run({"qobserver_save", [&] { return qobserver_save(&blob, observer); }, freed(blob, qblob_free)});
  run({"qobserver_load", [&] { return qobserver_load(&loaded, qblob_data(blob), qblob_size(blob)); },
       freed(loaded, qobserver_free)});
  run({"qobserver_quantizer", [&] { return qobserver_quantizer(&chosen, observer); }, freed(chosen, qquantizer_free)});
  for (qtensor *t : {x, q, y, view, w}) qtensor_free(t);
  qquantizer_free(grid);
  qquantizer_free(chosen);
  qattrs_free(attrs);
  qobserver_free(observer);
  qobserver_free(loaded);
  qblob_free(blob);
}

void wrapping(const Runner &run) {
  static int deletions = 0;
  float memory[4] = {0, 1, 2, 3};
  const int64_t shape[] = {4};
  qtensor *t = nullptr;
  const auto deleter = [](void *, void *) { ++deletions; };
  deletions = 0;
  run({"qtensor_wrap",
       [&] { return qtensor_wrap(&t, QTN_FLOAT32, shape, 1, nullptr, memory, sizeof memory, deleter, nullptr); },
       freed(t, qtensor_free)});
  if (deletions != 0) fault("qtensor_wrap", 0, "calls the deleter although it failed");
  qtensor_free(t);
  if (deletions != 1) fault("qtensor_wrap", 0, "does not call the deleter once");
}

void files(const Runner &run, const std::string &path) {
  const double scales[] = {0.5, 0.25, 0.125, 1, 2, 3};
  const int64_t shape[] = {6, 2};
  const char *const names[] = {"first", "second"};
  const std::string npy = path + ".npy";
  qquantizer *grid = nullptr;
  qtensor *q = nullptr, *x = sample(1), *y = nullptr;
  qblob *text = nullptr;
  qquantizer_create(&grid, QTN_INT8, QTN_PER_CHANNEL_SYMMETRIC, 0, scales, nullptr, 6, nullptr);
  qtensor_create(&q, QTN_INT8, shape, 2, grid, nullptr, 0);
  const qtensor *const both[] = {x, q};
  run({"qtensor_save_all", [&] { return qtensor_save_all(path.c_str(), names, both, 2); }, nullptr});
  run({"qtensor_load_named", [&] { return qtensor_load_named(&y, path.c_str(), "second"); }, freed(y, qtensor_free)});
  qtensor_free(y);
  run({"qtensor_load_rows", [&] { return qtensor_load_rows(&y, path.c_str(), "second", 1, 3); },
       freed(y, qtensor_free)});
  qtensor_free(y);
  run({"qtensor_inspect", [&] { return qtensor_inspect(&text, path.c_str()); }, freed(text, qblob_free)});
  qblob_free(text);
  run({"qtensor_save", [&] { return qtensor_save(q, path.c_str()); }, nullptr});
  run({"qtensor_load", [&] { return qtensor_load(&y, path.c_str()); }, freed(y, qtensor_free)});
  qtensor_free(y);
  run({"qtensor_save_npy", [&] { return qtensor_save_npy(x, npy.c_str()); }, nullptr});
  run({"qtensor_load_npy", [&] { return qtensor_load_npy(&y, npy.c_str()); }, freed(y, qtensor_free)});
  for (qtensor *t : {q, x, y}) qtensor_free(t);
  qquantizer_free(grid);
  std::remove(path.c_str());
  std::remove(npy.c_str());
}

}  // namespace

// As far as it is needed here: whom to call in the end.
struct DLManagedTensor {
  unsigned char dl_tensor[48];
  void *manager_ctx;
  void (*deleter)(DLManagedTensor *self);
};

namespace {

void lending(const Runner &run) {
  qtensor *x = sample(1), *taken = nullptr;
  DLManagedTensor *lent = nullptr;
  run({"qtensor_to_dlpack", [&] { return qtensor_to_dlpack(&lent, x); }, [&] { lent->deleter(lent); }});
  lent->deleter(lent);
  run({"qtensor_from_dlpack",
       [&] {
         const long remaining = pause_failing_new();
         DLManagedTensor *fresh = nullptr;
         qtensor_to_dlpack(&fresh, x);
         go_on_failing_new(remaining);
         const qstatus status = qtensor_from_dlpack(&taken, fresh);
         (void)pause_failing_new();
         if (status != QTN_OK) fresh->deleter(fresh);  // it is still ours
         return status;
       },
       freed(taken, qtensor_free)});
  qtensor_free(taken);
  qtensor_free(x);
}

void everything(const Runner &run, const char *path) {
  tensors(run);
  wrapping(run);
  lending(run);
  files(run, std::string(path) + ".safetensors");
  models(run, path, "onnx");
  models(run, path, "fbgemm");
  layers(run);
  for (const char *recipe : {static_cast<const char *>(nullptr), "onnx", "fbgemm", "nvidia"})
    for (const char *optimizer : {"sgd", "adamw"}) trainers(run, std::string(path) + ".safetensors", recipe, optimizer);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  qlib_set_threads(1);
  // What the library makes once and keeps is made here.
  everything(
      [](const Step &step) {
        if (step.call() != QTN_OK) fault(step.name, 0, "fails");
      },
      argv[1]);
  const long before = live_allocations();
  everything(exhaust, argv[1]);
  if (live_allocations() != before) fault("everything", 0, "leaks");
  std::remove(argv[1]);
  if (before == 0 || faults == 0) std::printf("%ld live before and %ld after\n", before, live_allocations());
  return faults == 0 ? 0 : 1;
}
