/* SPDX-License-Identifier: Apache-2.0
 *
 * The life of a trainer: what a failed call leaves, what outlives it, and what it takes up again from a file. */
#include <math.h>
#include <unistd.h>

#include "check.h"
#include "tiny_model.h"

enum { BATCH = 4, STEPS = 6 };

static char folder[] = "/tmp/qtensor-test-XXXXXX";

enum { CHECKPOINT, ANOTHER, BEFORE, AFTER, FILES };
static const char *const kNames[FILES] = {"a.safetensors", "b.safetensors", "before.safetensors", "after.safetensors"};
static char paths[FILES][64];

static int make_folder(void **state) {
  size_t i;
  (void)state;
  if (!mkdtemp(folder)) return 1;
  for (i = 0; i < FILES; ++i) snprintf(paths[i], sizeof paths[i], "%s/%s", folder, kNames[i]);
  return 0;
}

static int remove_folder(void **state) {
  size_t i;
  (void)state;
  for (i = 0; i < FILES; ++i) remove(paths[i]);
  return rmdir(folder);
}

/* --- models and trainers */

typedef struct settings {
  const char *activation; /**< of the deep model; NULL: the plain one */
  const char *recipe;     /**< of quantization-aware training; NULL: in float */
  const char *optimizer;
  int64_t threads, seed;
  int keeps_all; /**< no Dropout in the deep model */
} settings;

static const settings kFloat = {"Relu", NULL, "sgd", 1, 7, 0}, kGrids = {"Relu", "onnx", "sgd", 1, 7, 0};

static qmodel *load_model(const settings *s) {
  tiny_model bytes;
  qmodel *m = NULL, *prepared = NULL;
  qconfig *config = NULL;
  if (s->activation)
    tiny_model_make_deep(&bytes, s->activation, s->keeps_all ? "Identity" : "Dropout");
  else
    tiny_model_make(&bytes);
  OK(qmodel_load_bytes(&m, bytes.data, bytes.size));
  if (!s->recipe) return m;
  OK(qconfig_create(&config, s->recipe));
  OK(qmodel_prepare(&prepared, m, config, QTN_QAT));
  qconfig_free(config);
  qmodel_free(m);
  return prepared;
}

/** Model and configuration are freed before the first step. */
static qtrainer *trainer_of(const settings *s) {
  qmodel *m = load_model(s);
  qattrs *attrs = NULL;
  qtrainer *t = NULL;
  OK(qattrs_create(&attrs));
  OK(qattrs_set_string(attrs, "optimizer", s->optimizer));
  OK(qattrs_set_float(attrs, "lr", 0.05));
  if (strcmp(s->optimizer, "sgd") == 0) OK(qattrs_set_float(attrs, "momentum", 0.9));
  OK(qattrs_set_int(attrs, "threads", s->threads));
  OK(qattrs_set_int(attrs, "seed", s->seed));
  OK(qtrainer_create(&t, m, attrs));
  qattrs_free(attrs);
  qmodel_free(m);
  return t;
}

/** Samples from the first on. */
static qtensor *samples(int first, int count) {
  float values[2 * BATCH * TINY_INPUTS];
  const int64_t shape[] = {count, 1, 6, 6};
  int i;
  for (i = 0; i < count; ++i) tiny_sample(values + i * TINY_INPUTS, first + i);
  return tensor_of(QTN_FLOAT32, NULL, values, (size_t)count * TINY_INPUTS * sizeof *values, shape, 4);
}

static qtensor *labels(int first, int count) {
  int64_t values[2 * BATCH];
  const int64_t shape[] = {count};
  int i;
  for (i = 0; i < count; ++i) values[i] = (first + i) % TINY_OUTPUTS;
  return tensor_of(QTN_INT64, NULL, values, (size_t)count * sizeof *values, shape, 1);
}

typedef qstatus (*train_function)(double *out_loss, qtrainer *t, const qtensor *const *inputs, size_t input_count,
                                  const qtensor *const *targets, size_t target_count);

static double train(qtrainer *t, train_function function, int first, int count) {
  qtensor *x = samples(first, count), *y = labels(first, count);
  const qtensor *inputs[] = {x}, *targets[] = {y};
  double loss = 0;
  OK(function(&loss, t, inputs, 1, targets, 1));
  qtensor_free(x);
  qtensor_free(y);
  return loss;
}

static double steps(qtrainer *t, int begin, int end) {
  double loss = 0;
  for (; begin < end; ++begin) loss = train(t, qtrainer_step, begin % 2 * BATCH, BATCH);
  return loss;
}

/* --- what a trainer is, down to the bit: its checkpoint */

typedef struct file_bytes {
  unsigned char data[16384];
  size_t size;
} file_bytes;

static void read_bytes(file_bytes *bytes, const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  bytes->size = fread(bytes->data, 1, sizeof bytes->data, file);
  assert_in_range(bytes->size, 1, sizeof bytes->data - 1);
  fclose(file);
}

static void write_bytes(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  fclose(file);
}

static file_bytes state_of(const qtrainer *t) {
  file_bytes bytes;
  OK(qtrainer_save(t, paths[BEFORE]));
  read_bytes(&bytes, paths[BEFORE]);
  return bytes;
}

static void check_state(const qtrainer *t, const file_bytes *wanted) {
  const file_bytes now = state_of(t);
  assert_int_equal(now.size, wanted->size);
  assert_memory_equal(now.data, wanted->data, now.size);
}

/** All gradients, one after the other. */
static size_t gradients(float *values, size_t room, qtrainer *t) {
  size_t i, count = 0;
  for (i = 0; i < qtrainer_parameter_count(t); ++i) {
    qtensor *g = NULL;
    const size_t more = (OK(qtrainer_gradient(&g, t, i)), (size_t)qtensor_numel(g));
    assert_in_range(count + more, 0, room);
    memcpy(values + count, qtensor_data(g), more * sizeof *values);
    count += more;
    qtensor_free(g);
  }
  return count;
}

typedef qstatus (*shared_tensor)(qtensor **out, qtrainer *t, size_t index);

/** In both trainers the mean of both: what processes do with a sum over all of them. */
static void average(qtrainer *a, qtrainer *b, shared_tensor which, size_t count) {
  size_t i;
  int64_t e;
  for (i = 0; i < count; ++i) {
    qtensor *x = NULL, *y = NULL;
    void *xs = NULL, *ys = NULL;
    OK(which(&x, a, i));
    OK(which(&y, b, i));
    OK(qtensor_data_mut(&xs, x));
    OK(qtensor_data_mut(&ys, y));
    for (e = 0; e < qtensor_numel(x); ++e)
      ((float *)xs)[e] = ((float *)ys)[e] = (((float *)xs)[e] + ((float *)ys)[e]) / 2;
    qtensor_free(x);
    qtensor_free(y);
  }
}

static void check_close(qtrainer *a, qtrainer *b, shared_tensor which, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) {
    qtensor *x = NULL, *y = NULL;
    OK(which(&x, a, i));
    OK(which(&y, b, i));
    check_floats(x, qtensor_data(y), (size_t)qtensor_numel(y), 1e-5f);
    qtensor_free(x);
    qtensor_free(y);
  }
}

static size_t index_of(const qtrainer *t, const char *name) {
  size_t i;
  for (i = 0; i < qtrainer_parameter_count(t); ++i)
    if (strcmp(qtrainer_parameter_name(t, i), name) == 0) return i;
  fail_msg("there is no parameter %s", name);
  return 0;
}

/* --- tests */

static qtensor *run(const qmodel *m, const qtensor *x) {
  qsession *s = NULL;
  qtensor *y = NULL;
  OK(qsession_create(&s, m, NULL));
  OK(qsession_run(&y, 1, s, &x, 1));
  qsession_free(s);
  return y;
}

/** The values of all parameters, or `values` into them. */
static size_t copy_parameters(float *values, size_t room, qtrainer *t, int into) {
  size_t i, count = 0;
  for (i = 0; i < qtrainer_parameter_count(t); ++i) {
    qtensor *p = NULL;
    void *data = NULL;
    const size_t more = (OK(qtrainer_parameter(&p, t, i)), (size_t)qtensor_numel(p));
    assert_in_range(count + more, 0, room);
    OK(qtensor_data_mut(&data, p));
    if (into)
      memcpy(data, values + count, more * sizeof *values);
    else
      memcpy(values + count, data, more * sizeof *values);
    count += more;
    qtensor_free(p);
  }
  return count;
}

/** The loss of the first samples with these parameters. */
static double loss_at(float *values, size_t count) {
  static const settings plain = {NULL, NULL, "sgd", 1, 7, 0};
  qtrainer *t = trainer_of(&plain);
  double loss;
  assert_int_equal(copy_parameters(values, count, t, 1), count);
  loss = train(t, qtrainer_backward, 0, BATCH);
  qtrainer_free(t);
  return loss;
}

/** A gradient is the slope of the loss, and a step goes down by the rate times what momentum has gathered of it. */
static void steps_go_down_the_slope(void **state) {
  static const settings plain = {NULL, NULL, "sgd", 1, 7, 0};
  static const double rate = 0.05, momentum = 0.9, apart = 1e-3;
  qtrainer *t = trainer_of(&plain);
  float value[64], slope[64], moved[64], gathered[64] = {0};
  const size_t count = copy_parameters(value, COUNT(value), t, 0);
  size_t i;
  int step;
  (void)state;
  for (step = 0; step < 3; ++step) {
    train(t, qtrainer_backward, 0, BATCH);
    assert_int_equal(gradients(slope, COUNT(slope), t), count);
    for (i = 0; step == 0 && i < count; ++i) {
      const float kept = value[i];
      double above, below;
      value[i] = (float)((double)kept + apart);
      above = loss_at(value, count);
      value[i] = (float)((double)kept - apart);
      below = loss_at(value, count);
      value[i] = kept;
      assert_float_equal(slope[i], (float)((above - below) / (2 * apart)), 1e-3);
    }
    OK(qtrainer_update(t));
    copy_parameters(moved, COUNT(moved), t, 0);
    for (i = 0; i < count; ++i) {
      gathered[i] = (float)(momentum * (double)gathered[i] + (double)slope[i]);
      assert_float_equal(moved[i], (float)((double)value[i] - rate * (double)gathered[i]), 1e-6);
    }
    memcpy(value, moved, sizeof value);
  }
  qtrainer_free(t);
}

static void learns(void **state) {
  const settings *const both[] = {&kFloat, &kGrids};
  qtensor *x = samples(0, BATCH);
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(both); ++i) {
    qtrainer *t = trainer_of(both[i]);
    const double first = steps(t, 0, 2), last = steps(t, 2, 60);
    qmodel *m = NULL, *int8 = NULL;
    qtensor *evaluated = NULL, *y;
    const qtensor *inputs[] = {x};
    assert_true(last < first - 0.02);
    OK(qtrainer_evaluate(&evaluated, 1, t, inputs, 1));
    OK(qtrainer_model(&m, t));
    qtrainer_free(t);
    if (both[i]->recipe) {
      FAILS(QTN_ESTATE, "is prepared", qsession_create(&(qsession *){NULL}, m, NULL));
      OK(qmodel_convert(&int8, m, NULL));
      qmodel_free(m);
      m = int8;
    }
    y = run(m, x);
    assert_memory_equal(qtensor_data(y), qtensor_data(evaluated), qtensor_nbytes(y));
    qtensor_free(y);
    qtensor_free(evaluated);
    qmodel_free(m);
  }
  qtensor_free(x);
}

static void bad_batches_change_nothing(void **state) {
  const settings *const both[] = {&kFloat, &kGrids};
  static const int64_t bad_labels[BATCH] = {0, 1, 3, 1};
  static const float few[TINY_INPUTS] = {0};
  qtensor *x = samples(0, BATCH), *y = labels(0, BATCH), *nan = samples(0, BATCH);
  qtensor *high = tensor_of(QTN_INT64, NULL, bad_labels, sizeof bad_labels, DIMS(BATCH)), *two = labels(0, 2);
  qtensor *flat = FLOATS(few, DIMS(1, 36));
  const qtensor *xs[] = {x, x}, *ys[] = {y, y}, *nans[] = {nan}, *highs[] = {high}, *twos[] = {two}, *flats[] = {flat};
  void *data = NULL;
  size_t i;
  (void)state;
  OK(qtensor_data_mut(&data, nan));
  ((float *)data)[40] = NAN;
  for (i = 0; i < COUNT(both); ++i) {
    qtrainer *t = trainer_of(both[i]), *twin = trainer_of(both[i]);
    file_bytes before;
    float known[64], now[64], kept;
    size_t count;
    double loss = 1;
    qtensor *bias = NULL;
    steps(t, 0, 2);
    before = state_of(t);
    count = gradients(known, COUNT(known), t);
    FAILS(QTN_EINVAL, "label 3 of sample 2 is outside the 3 classes", qtrainer_step(&loss, t, xs, 1, highs, 1));
    assert_true(loss == 0);
    FAILS(QTN_EINVAL, "takes 1 inputs, not 2", qtrainer_step(&loss, t, xs, 2, ys, 1));
    FAILS(QTN_EINVAL, "1 targets, not 2", qtrainer_step(&loss, t, xs, 1, ys, 2));
    FAILS(QTN_ESHAPE, "labels are 2, not 4", qtrainer_step(&loss, t, xs, 1, twos, 1));
    FAILS(QTN_ESHAPE, "takes ?x1x6x6, not 1x36", qtrainer_step(&loss, t, flats, 1, ys, 1));
    FAILS(QTN_EDTYPE, "is float32, not int64", qtrainer_step(&loss, t, ys, 1, ys, 1));
    FAILS(QTN_EINVAL, "at step 2; the first tensor that is not finite is \"x\"",
          qtrainer_step(&loss, t, nans, 1, ys, 1));
    OK(qtrainer_parameter(&bias, t, index_of(t, "fc.bias")));
    OK(qtensor_data_mut(&data, bias));
    kept = *(float *)data;
    *(float *)data = NAN;
    FAILS(QTN_EINVAL, "the loss is nan at step 2; the first tensor that is not finite is \"fc.bias\"",
          qtrainer_step(&loss, t, xs, 1, ys, 1));
    *(float *)data = kept;
    qtensor_free(bias);
    check_state(t, &before);
    assert_int_equal(gradients(now, COUNT(now), t), count);
    assert_memory_equal(now, known, count * sizeof *now);
    FAILS(QTN_ESTATE, "no backward since the last update", qtrainer_update(t));
    steps(t, 2, 3); /* nor is anything remembered */
    steps(twin, 0, 3);
    before = state_of(twin);
    check_state(t, &before);
    qtrainer_free(t);
    qtrainer_free(twin);
  }
  qtensor_free(high);
  qtensor_free(two);
  qtensor_free(x);
  qtensor_free(y);
  qtensor_free(nan);
  qtensor_free(flat);
}

static void nothing_to_convert_before_a_step(void **state) {
  qtrainer *t = trainer_of(&kGrids);
  qmodel *m = NULL, *int8 = NULL;
  (void)state;
  OK(qtrainer_model(&m, t));
  FAILS(QTN_ESTATE, "training brought no data to tensor \"x\"", qmodel_convert(&int8, m, NULL));
  qmodel_free(m);
  steps(t, 0, 1);
  OK(qtrainer_model(&m, t));
  OK(qmodel_convert(&int8, m, NULL));
  qmodel_free(m);
  qmodel_free(int8);
  qtrainer_free(t);
}

static void other_checkpoints_are_refused(void **state) {
  static const settings plain = {NULL, NULL, "sgd", 1, 7, 0}, adam = {"Relu", NULL, "adam", 1, 7, 0};
  const settings *const others[] = {&plain, &adam, &kGrids};
  qtrainer *t = trainer_of(&kFloat);
  file_bytes before, file;
  qtensor *x = samples(0, 1);
  size_t i;
  (void)state;
  steps(t, 0, 2);
  before = state_of(t);
  for (i = 0; i < COUNT(others); ++i) {
    qtrainer *other = trainer_of(others[i]);
    steps(other, 0, 1);
    OK(qtrainer_save(other, paths[ANOTHER]));
    FAILS(QTN_EINVAL, "another model or optimizer", qtrainer_load(t, paths[ANOTHER]));
    FAILS(QTN_EINVAL, "another model or optimizer",
          (OK(qtrainer_save(t, paths[CHECKPOINT])), qtrainer_load(other, paths[CHECKPOINT])));
    qtrainer_free(other);
  }
  read_bytes(&file, paths[CHECKPOINT]);
  for (i = 0; i < file.size; i += 97) {
    write_bytes(paths[ANOTHER], file.data, i);
    FAILS(QTN_EFORMAT, paths[ANOTHER], qtrainer_load(t, paths[ANOTHER]));
  }
  OK(qtensor_save(x, paths[ANOTHER]));
  FAILS(QTN_EFORMAT, "is no checkpoint", qtrainer_load(t, paths[ANOTHER]));
  FAILS(QTN_EIO, "No such file", qtrainer_load(t, "/nowhere/t.safetensors"));
  FAILS(QTN_EIO, "No such file", qtrainer_save(t, "/nowhere/t.safetensors"));
  check_state(t, &before);
  train(t, qtrainer_backward, 0, BATCH);
  FAILS(QTN_ESTATE, "between backward and update", qtrainer_save(t, paths[ANOTHER]));
  qtensor_free(x);
  qtrainer_free(t);
}

static void parameters_share_storage_and_stay(void **state) {
  static const settings plain = {NULL, NULL, "sgd", 1, 7, 0};
  qtrainer *t = trainer_of(&plain);
  const size_t at = index_of(t, "fc.bias");
  qtensor *value = NULL, *gradient = NULL, *x = samples(0, 1), *y = NULL, *moved = NULL;
  const qtensor *inputs[] = {x};
  void *data = NULL;
  float before;
  (void)state;
  assert_int_equal(qtrainer_parameter_count(t), 4);
  assert_null(qtrainer_parameter_name(t, 4));
  OK(qtrainer_parameter(&value, t, at));
  OK(qtrainer_gradient(&gradient, t, at));
  assert_true(float_at(gradient, 0) == 0);
  OK(qtrainer_evaluate(&y, 1, t, inputs, 1));
  OK(qtensor_data_mut(&data, value));
  ((float *)data)[1] += 2;
  OK(qtrainer_evaluate(&moved, 1, t, inputs, 1));
  assert_float_equal(float_at(moved, 1), float_at(y, 1) + 2, 1e-6);
  train(t, qtrainer_backward, 0, BATCH);
  assert_true(float_at(gradient, 0) != 0);
  OK(qtensor_data_mut(&data, gradient)); /* what the caller makes of it counts */
  memset(data, 0, qtensor_nbytes(gradient));
  before = float_at(value, 0);
  OK(qtrainer_update(t));
  assert_true(float_at(value, 0) == before);
  train(t, qtrainer_step, 0, BATCH);
  assert_true(float_at(value, 0) != before);
  qtrainer_free(t);
  OK(qtensor_data_mut(&data, value));
  memset(data, 0, qtensor_nbytes(value));
  assert_true(float_at(gradient, 0) != 0);
  qtensor_free(value);
  qtensor_free(gradient);
  qtensor_free(moved);
  qtensor_free(x);
  qtensor_free(y);
}

static void parts_are_a_batch(void **state) {
  static const settings plain = {NULL, NULL, "sgd", 1, 7, 0};
  qtrainer *whole = trainer_of(&plain), *parts = trainer_of(&plain);
  float wanted[64], got[64];
  size_t i, count;
  double a, b;
  const double loss = train(whole, qtrainer_backward, 0, 2 * BATCH);
  (void)state;
  a = train(parts, qtrainer_backward, 0, BATCH);
  b = train(parts, qtrainer_backward, BATCH, BATCH);
  assert_true(fabs((a + b) / 2 - loss) < 1e-6);
  count = gradients(wanted, COUNT(wanted), whole);
  assert_int_equal(gradients(got, COUNT(got), parts), count);
  for (i = 0; i < count; ++i) assert_float_equal(got[i], wanted[i], 1e-6);
  OK(qtrainer_update(parts));
  train(parts, qtrainer_backward, 0, 2 * BATCH); /* begins again */
  OK(qtrainer_update(whole));
  train(whole, qtrainer_backward, 0, 2 * BATCH);
  count = gradients(wanted, COUNT(wanted), whole);
  gradients(got, COUNT(got), parts);
  for (i = 0; i < count; ++i) assert_float_equal(got[i], wanted[i], 1e-5);
  qtrainer_free(whole);
  qtrainer_free(parts);
}

/** BatchNormalization normalizes each part by itself, and its statistics wait for the update. SGD, for Adam makes a
 * step of the rounding of the gradient of a bias before a normalization. */
static void processes_are_parts(void **state) {
  static const settings whole = {"Relu", NULL, "sgd", 1, 7, 1}, grids = {"Relu", "onnx", "sgd", 1, 7, 1};
  const settings *const both[] = {&whole, &grids};
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(both); ++i) {
    qtrainer *parts = trainer_of(both[i]), *first = trainer_of(both[i]), *second = trainer_of(both[i]);
    qtrainer *const all[] = {parts, first, second};
    const size_t trained = qtrainer_parameter_count(parts), buffers = qtrainer_buffer_count(parts);
    qattrs *attrs = NULL;
    qtensor *mean = NULL;
    float before;
    int step;
    size_t t;
    assert_int_equal(buffers, 2);
    assert_string_equal(qtrainer_buffer_name(parts, 0), "norm.running_mean");
    assert_string_equal(qtrainer_buffer_name(parts, 1), "norm.running_var");
    assert_null(qtrainer_buffer_name(parts, 2));
    OK(qattrs_create(&attrs)); /* grids of activations follow each process's own part */
    if (both[i]->recipe) OK(qattrs_set_int(attrs, "observers", 0));
    for (t = 0; t < COUNT(all); ++t) {
      train(all[t], qtrainer_step, 0, BATCH);
      OK(qtrainer_set(all[t], attrs));
    }
    OK(qtrainer_buffer(&mean, parts, 0));
    for (step = 0; step < STEPS; ++step) {
      before = float_at(mean, 0);
      train(parts, qtrainer_backward, 0, BATCH);
      train(parts, qtrainer_backward, BATCH, BATCH);
      assert_true(float_at(mean, 0) == before);
      OK(qtrainer_update(parts));
      assert_true(float_at(mean, 0) != before);
      train(first, qtrainer_backward, 0, BATCH);
      train(second, qtrainer_backward, BATCH, BATCH);
      average(first, second, qtrainer_gradient, trained);
      OK(qtrainer_update(first));
      OK(qtrainer_update(second));
      average(first, second, qtrainer_buffer, buffers);
    }
    check_close(first, parts, qtrainer_parameter, trained);
    check_close(first, parts, qtrainer_buffer, buffers);
    qattrs_free(attrs);
    qtensor_free(mean);
    for (t = 0; t < COUNT(all); ++t) qtrainer_free(all[t]);
  }
}

static void batches_before_a_checkpoint_are_forgotten(void **state) {
  qtrainer *t = trainer_of(&kFloat), *twin = trainer_of(&kFloat);
  file_bytes wanted;
  (void)state;
  steps(t, 0, 1);
  steps(twin, 0, 1);
  OK(qtrainer_save(t, paths[CHECKPOINT]));
  train(t, qtrainer_backward, BATCH, BATCH);
  OK(qtrainer_load(t, paths[CHECKPOINT]));
  steps(t, 1, 2);
  steps(twin, 1, 2);
  wanted = state_of(twin);
  check_state(t, &wanted);
  qtrainer_free(t);
  qtrainer_free(twin);
}

static void goes_on_with_the_same_bits(void **state) {
  static const settings adam = {"Relu", "fbgemm", "adamw", 1, 3, 0};
  const settings *const all[] = {&kFloat, &kGrids, &adam};
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(all); ++i) {
    settings another_seed = *all[i];
    qtrainer *never = trainer_of(all[i]), *stopped = trainer_of(all[i]), *resumed;
    file_bytes wanted, half;
    double loss;
    another_seed.seed = 99; /* that of the file counts */
    resumed = trainer_of(&another_seed);
    steps(stopped, 0, STEPS / 2);
    OK(qtrainer_save(stopped, paths[CHECKPOINT]));
    half = state_of(stopped);
    qtrainer_free(stopped);
    steps(resumed, 0, 1);
    OK(qtrainer_load(resumed, paths[CHECKPOINT]));
    check_state(resumed, &half);
    loss = steps(never, 0, STEPS);
    assert_true(steps(resumed, STEPS / 2, STEPS) == loss);
    wanted = state_of(never);
    check_state(resumed, &wanted);
    qtrainer_free(never);
    qtrainer_free(resumed);
  }
}

static void seeds_decide_and_threads_do_not(void **state) {
  const settings *const both[] = {&kFloat, &kGrids};
  size_t i;
  (void)state;
  for (i = 0; i < COUNT(both); ++i) {
    settings s = *both[i];
    double loss = 0;
    file_bytes wanted;
    qtrainer *t;
    for (s.threads = 1; s.threads <= 3; ++s.threads) {
      t = trainer_of(&s);
      loss = steps(t, 0, STEPS);
      if (s.threads == 1)
        wanted = state_of(t);
      else
        check_state(t, &wanted);
      qtrainer_free(t);
    }
    s.threads = 1;
    s.seed += 1; /* Dropout drops others */
    t = trainer_of(&s);
    assert_true(steps(t, 0, STEPS) != loss);
    qtrainer_free(t);
  }
}

/* --- all of it in one call */

enum { COUNTED = 2, EPOCHS = 3 }; /* batches of an epoch */

typedef struct course {
  int calibrations, steps, last_epoch;
  int ends_after; /* steps; 0: never */
  qanswer answer; /* what is given then */
  int fails_at, forgets;  /* the batch that gives an error, or no target; 0: none */
  double losses[COUNTED * EPOCHS];
} course;

static qstatus give_batch(qtensor **inputs, size_t input_count, qtensor **targets, size_t target_count, size_t epoch,
                          size_t index, void *ctx) {
  course *c = ctx;
  const int first = (int)((epoch + index) % 2) * BATCH;
  assert_int_equal(input_count, 1);
  assert_int_equal(target_count, 1);
  assert_in_range(index, 0, COUNTED - 1);
  inputs[0] = samples(first, BATCH);
  if (c->forgets) return QTN_OK;
  targets[0] = labels(first, BATCH);
  c->last_epoch = (int)epoch;
  return c->fails_at && c->steps + 1 == c->fails_at ? QTN_EIO : QTN_OK;
}

static qanswer follow(const char *stage, size_t done, size_t total, double loss, void *ctx) {
  course *c = ctx;
  if (strcmp(stage, "calibrating") == 0) {
    assert_true(isnan(loss));
    assert_int_equal(done, (size_t)++c->calibrations);
    return c->ends_after < 0 ? c->answer : QTN_CONTINUE;
  }
  assert_string_equal(stage, "training");
  assert_int_equal(total, COUNTED * EPOCHS);
  c->losses[c->steps++] = loss;
  assert_int_equal(done, (size_t)c->steps);
  return c->steps == c->ends_after ? c->answer : QTN_CONTINUE;
}

static qattrs *few_epochs(void) {
  qattrs *attrs = NULL;
  OK(qattrs_create(&attrs));
  OK(qattrs_set_int(attrs, "epochs", EPOCHS));
  OK(qattrs_set_int(attrs, "seed", 7));
  return attrs;
}

/** The model of the first `count` steps, with every default of the one call said; its losses. */
static qmodel *the_long_way(const qmodel *m, const qconfig *config, int count, double *losses) {
  qmodel *prepared = NULL, *trained = NULL, *int8 = NULL;
  qattrs *attrs = NULL, *frozen = NULL;
  qtrainer *t = NULL;
  int i;
  OK(qmodel_prepare(&prepared, m, config, QTN_QAT));
  for (i = 0; i < COUNTED; ++i) {
    qtensor *x = samples(i * BATCH, BATCH);
    const qtensor *inputs[] = {x};
    OK(qmodel_calibrate(prepared, inputs, 1));
    qtensor_free(x);
  }
  OK(qattrs_create(&attrs));
  OK(qattrs_set_string(attrs, "optimizer", "adamw"));
  OK(qattrs_set_string(attrs, "schedule", "cosine"));
  OK(qattrs_set_float(attrs, "lr", 0.0005));
  OK(qattrs_set_float(attrs, "min_lr", 0.000005));
  OK(qattrs_set_int(attrs, "total_steps", COUNTED * EPOCHS));
  OK(qattrs_set_int(attrs, "seed", 7));
  OK(qtrainer_create(&t, prepared, attrs));
  OK(qattrs_create(&frozen));
  OK(qattrs_set_int(frozen, "freeze_bn", 1));
  for (i = 0; i < count; ++i) {
    if (i == COUNTED * (EPOCHS - 1)) OK(qtrainer_set(t, frozen)); /* the last epoch is more than a fifth */
    losses[i] = train(t, qtrainer_step, (i / COUNTED + i) % 2 * BATCH, BATCH);
  }
  qattrs_free(frozen);
  OK(qtrainer_model(&trained, t));
  OK(qmodel_convert(&int8, trained, NULL));
  qtrainer_free(t);
  qattrs_free(attrs);
  qmodel_free(trained);
  qmodel_free(prepared);
  return int8;
}

static void check_same_file(const qmodel *a, const qmodel *b) {
  file_bytes x, y;
  OK(qmodel_save(a, paths[BEFORE], NULL));
  OK(qmodel_save(b, paths[AFTER], NULL));
  read_bytes(&x, paths[BEFORE]);
  read_bytes(&y, paths[AFTER]);
  assert_int_equal(x.size, y.size);
  assert_memory_equal(x.data, y.data, x.size);
}

static void one_call_is_the_long_way(void **state) {
  static const settings in_float = {"Relu", NULL, "sgd", 1, 7, 0};
  qmodel *m = load_model(&in_float), *untouched = load_model(&in_float);
  qconfig *config = NULL;
  qattrs *attrs = few_epochs();
  int stop;
  (void)state;
  OK(qconfig_create(&config, "onnx"));
  for (stop = 0; stop <= 1; ++stop) { /* to the end, or ended in the second epoch */
    const int count = stop ? COUNTED + 1 : COUNTED * EPOCHS;
    course c = {0, 0, 0, stop ? COUNTED + 1 : 0, QTN_STOP, 0, 0, {0}};
    qmodel *int8 = NULL, *wanted;
    qblob *report = NULL;
    double losses[COUNTED * EPOCHS];
    char text[96];
    OK(qmodel_quantize_qat(&int8, &report, m, config, give_batch, COUNTED, 1, attrs, follow, &c));
    wanted = the_long_way(m, config, count, losses);
    assert_int_equal(c.calibrations, COUNTED);
    assert_int_equal(c.steps, count);
    assert_int_equal(c.last_epoch, (count - 1) / COUNTED);
    assert_memory_equal(c.losses, losses, (size_t)count * sizeof *losses);
    check_same_file(int8, wanted);
    snprintf(text, sizeof text, "\"training\":{\"steps\":%d,\"planned\":%d,\"losses\":[", count, COUNTED * EPOCHS);
    if (!strstr(qblob_data(report), text)) fail_msg("%s lacks %s", (const char *)qblob_data(report), text);
    qblob_free(report);
    qmodel_free(wanted);
    qmodel_free(int8);
  }
  check_same_file(m, untouched);
  qconfig_free(config);
  qattrs_free(attrs);
  qmodel_free(m);
  qmodel_free(untouched);
}

static void one_call_can_end_early(void **state) {
  static const settings in_float = {"Relu", NULL, "sgd", 1, 7, 0};
  static const struct {
    course c;
    qstatus status;
    const char *message;
  } cases[] = {
      {{.ends_after = 2, .answer = QTN_CANCEL}, QTN_ECANCELED, "canceled while training, 2 of 6 done"},
      {{.ends_after = 2, .answer = (qanswer)7}, QTN_ECANCELED, "canceled while training, 2 of 6 done"},
      {{.ends_after = -1, .answer = QTN_STOP}, QTN_ECANCELED, "canceled while calibrating, 1 of 2 done"},
      {{.fails_at = 3}, QTN_EIO, "batch 0 gave QTN_EIO"},
      {{.forgets = 1}, QTN_EINVAL, "target 0 of batch 0 is NULL"},
  };
  qmodel *m = load_model(&in_float), *prepared = NULL;
  qconfig *config = NULL;
  qattrs *attrs = few_epochs();
  course c = {0};
  size_t i;
  (void)state;
  OK(qconfig_create(&config, "onnx"));
  for (i = 0; i < COUNT(cases); ++i) {
    qmodel *int8 = (qmodel *)&c;
    qblob *report = (qblob *)&c;
    c = cases[i].c;
    FAILS(cases[i].status, cases[i].message,
          qmodel_quantize_qat(&int8, &report, m, config, give_batch, COUNTED, 1, attrs, follow, &c));
    assert_null(int8);
    assert_null(report);
  }
  OK(qmodel_prepare(&prepared, m, config, QTN_QAT));
  FAILS(QTN_ESTATE, "prepared already",
        qmodel_quantize_qat(&(qmodel *){NULL}, NULL, prepared, config, give_batch, COUNTED, 1, attrs, NULL, &c));
  qmodel_free(prepared);
  qconfig_free(config);
  qattrs_free(attrs);
  qmodel_free(m);
}

static void nodes_without_gradient_are_named(void **state) {
  static const settings floored = {"Floor", NULL, "sgd", 1, 7, 0};
  qtrainer *t = trainer_of(&floored);
  qtensor *x = samples(0, BATCH), *y = labels(0, BATCH), *out = NULL;
  const qtensor *inputs[] = {x}, *targets[] = {y};
  const file_bytes before = state_of(t);
  double loss = 1;
  (void)state;
  FAILS(QTN_EUNSUPPORTED, "node \"active\": Floor has no gradient", qtrainer_step(&loss, t, inputs, 1, targets, 1));
  assert_true(loss == 0);
  check_state(t, &before);
  OK(qtrainer_evaluate(&out, 1, t, inputs, 1));
  qtensor_free(out);
  qtensor_free(x);
  qtensor_free(y);
  qtrainer_free(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(learns),
      cmocka_unit_test(steps_go_down_the_slope),
      cmocka_unit_test(bad_batches_change_nothing),
      cmocka_unit_test(nothing_to_convert_before_a_step),
      cmocka_unit_test(other_checkpoints_are_refused),
      cmocka_unit_test(parameters_share_storage_and_stay),
      cmocka_unit_test(parts_are_a_batch),
      cmocka_unit_test(processes_are_parts),
      cmocka_unit_test(batches_before_a_checkpoint_are_forgotten),
      cmocka_unit_test(goes_on_with_the_same_bits),
      cmocka_unit_test(seeds_decide_and_threads_do_not),
      cmocka_unit_test(one_call_is_the_long_way),
      cmocka_unit_test(one_call_can_end_early),
      cmocka_unit_test(nodes_without_gradient_are_named),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
