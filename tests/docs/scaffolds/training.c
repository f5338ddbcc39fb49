#include "checked.h"

static qtensor *images, *answers;

static void batch_of(qtensor **x, qtensor **y, size_t index) {
  const int64_t first = (int64_t)index * 32;
  qtensor_slice(x, images, 0, first, first + 32, 1);
  qtensor_slice(y, answers, 0, first, first + 32, 1);
}

static qstatus batch(qtensor **inputs, size_t input_count, qtensor **targets, size_t target_count, size_t epoch,
                     size_t index, void *ctx) {
  batch_of(inputs, targets, index);
  return input_count == 1 && target_count == 1 && epoch < 5 && !ctx ? QTN_OK : QTN_EINTERNAL;
}

static void groups(qtrainer *trainer) {
  qattrs *frozen = NULL, *slow = NULL;
  qattrs_create(&frozen);
  qattrs_create(&slow);
//@ 1
}

int main(void) {
  qtensor_load_npy(&images, "train_images.npy");
  qtensor_load_npy(&answers, "train_labels.npy");
  const size_t steps = 10, calibration_count = 2;
  qtensor *batch_x[10], *batch_y[10];
  for (size_t i = 0; i < steps; ++i) batch_of(&batch_x[i], &batch_y[i], i);
  const qtensor *test = batch_x[0], *const *labels = (const qtensor *const *)batch_y,
                *const *calibration = (const qtensor *const *)batch_x;
  {
    const qtensor *const *batch = calibration;
//@ 2
    if (qtensor_numel(scores) != 320) return 1;
  }
  qmodel *model = NULL, *int8 = NULL;
  qconfig *config = NULL;
  qattrs *attrs = NULL, *learning = NULL;
  qblob *report = NULL;
  const size_t batch_count = 3;
  const qmodel_training_cb progress = NULL;
  void *const ctx = NULL;
  qmodel_load(&model, "untrained.onnx");
  qconfig_create(&config, "onnx");
  qattrs_create(&attrs);
//@ 3
  if (!strstr(qblob_data(report), "\"steps\"")) return 1;

  qtrainer *trainer = NULL;
  qmodel *prepared = NULL;
  qattrs_create(&learning);
  qattrs_set_string(learning, "weight_learning", "lsq");
  qconfig_set(config, "*", learning);
  qmodel_load(&model, "untrained.onnx");
  qmodel_prepare(&prepared, model, config, QTN_QAT);
  qtrainer_create(&trainer, prepared, NULL);
  groups(trainer);
  return 0;
}
