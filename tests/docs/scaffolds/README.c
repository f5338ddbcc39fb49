#include "checked.h"

static qstatus give(qtensor **inputs, size_t input_count, size_t index, void *samples) {
  (void)input_count;
  return qtensor_slice(&inputs[0], samples, 0, (int64_t)index, (int64_t)index + 1, 1);
}

int main(void) {
  qmodel *model = NULL, *int8 = NULL;
  qconfig *config = NULL;
  qtensor *samples = NULL;
  qtensor_load_npy(&samples, "calibration.npy");
  const size_t count = (size_t)qtensor_shape(samples)[0];
//@ 1
  qsession *session = NULL;
  qtensor *first = NULL, *scores = NULL;
  qtensor_slice(&first, samples, 0, 0, 1, 1);
  const qtensor *inputs[] = {first};
  qsession_create(&session, int8, NULL);
  return qsession_run(&scores, 1, session, inputs, 1);
}
