#include "checked.h"

int main(void) {
  qmodel *model = NULL, *prepared = NULL, *int8 = NULL;
  qconfig *config = NULL;
  qtensor *data = NULL;
  qtensor_load_npy(&data, "calibration.npy");
  qconfig_create(&config, "onnx");
  const size_t count = 10;
  const qtensor *samples[10];
  for (size_t i = 0; i < count; ++i) qtensor_slice((qtensor **)&samples[i], data, 0, (int64_t)i, (int64_t)i + 1, 1);
//@ 1
  qsession *session = NULL;
  qtensor *scores = NULL;
  qsession_create(&session, int8, NULL);
  return qsession_run(&scores, 1, session, samples, 1);
}
