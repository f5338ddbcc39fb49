/* SPDX-License-Identifier: Apache-2.0
 *
 * The conformance cases with every call failing at each of its allocations in turn: linked with the runner of the
 * cases, whose call() and main() it takes over. A failure is QTN_ENOMEM with a message and without outputs, leaks
 * nothing and changes nothing: the same call is then made again with a later allocation failing, and in the end with
 * none, and the case goes on to check what came of it.
 *
 *     walk_allocations LIBRARY ROOT CASES.json... [--row ROW] [--dense N] [--for-good]
 *
 * prints a line for each function: how often it was called, at how many allocations it failed, how many of these went
 * well, and how many calls were failed at all of their allocations, rather than at the first N and then at ever fewer,
 * each a tenth farther than the one before. With --for-good all allocations after it fail, too. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../capi/failing_new.h"
#include "frame.h"

int conformance_main(int argc, char **argv);
bool __real_call(frame *f, const char *function, qstatus *status);
bool __wrap_call(frame *f, const char *function, qstatus *status);

enum { MAX_FUNCTIONS = 256 };

static struct record {
  const char *name;
  long calls, points, survived, exhausted;
} records[MAX_FUNCTIONS];
static size_t record_count;

static bool walking;
static long dense = 1000000;
static bool for_good;
static long faults;

static struct record *record_of(const char *function) {
  static const char *const names[] = {
#define X(name) #name,
#include "functions.inc"
#undef X
  };
  if (record_count == 0)
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) records[record_count++].name = names[i];
  for (size_t i = 0; i < record_count; ++i)
    if (strcmp(records[i].name, function) == 0) return &records[i];
  fprintf(stderr, "walk_allocations: %s is no function of the library\n", function);
  exit(2);
}

static bool fault(const char *function, long n, const char *what) {
  if (++faults <= 50) fprintf(stderr, "%s, allocation %ld: %s (%s)\n", function, n, what, qtn.qerror_message());
  return false;
}

/* Attributes that the runner makes of a case's text, and tensors that its callbacks hand over, are not what is tested.
 */
static api plain;
static const char *tested;

static long aside(const char *function) { return strcmp(function, tested) == 0 ? -1 : pause_failing_new(); }
static void back(long left) {
  if (left >= 0) go_on_failing_new(left);
}

#define ASIDE(name, parameters, arguments)       \
  static qstatus aside_##name parameters {       \
    const long left = aside(#name);              \
    const qstatus status = plain.name arguments; \
    back(left);                                  \
    return status;                               \
  }
ASIDE(qattrs_create, (qattrs * *out), (out))
ASIDE(qattrs_set_int, (qattrs * a, const char *key, int64_t value), (a, key, value))
ASIDE(qattrs_set_float, (qattrs * a, const char *key, double value), (a, key, value))
ASIDE(qattrs_set_string, (qattrs * a, const char *key, const char *value), (a, key, value))
ASIDE(qattrs_set_ints, (qattrs * a, const char *key, const int64_t *values, size_t count), (a, key, values, count))
ASIDE(qattrs_set_floats, (qattrs * a, const char *key, const double *values, size_t count), (a, key, values, count))
ASIDE(qtensor_share, (qtensor * *out, const qtensor *t), (out, t))

static void set_aside(void) {
  if (qtn.qattrs_create == aside_qattrs_create) return;
  plain = qtn;
#define X(name) qtn.name = aside_##name;
  X(qattrs_create)
  X(qattrs_set_int)
  X(qattrs_set_float)
  X(qattrs_set_string)
  X(qattrs_set_ints)
  X(qattrs_set_floats)
  X(qtensor_share)
#undef X
}

static bool is_among(const char *function, const char *const *list, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (strcmp(list[i], function) == 0) return true;
  return false;
}

/* Whether a handle may keep what such a call has made although it failed, such as a plan. It goes with the handle, as
 * the count in the end says. */
static bool keeps(const char *function) {
  static const char *const list[] = {"qmodel_calibrate", "qsession_run",      "qsession_profile", "qlayer_run",
                                     "qtrainer_step",    "qtrainer_backward", "qtrainer_update",  "qtrainer_evaluate"};
  return is_among(function, list, sizeof list / sizeof *list);
}

/* Whether a call may be made again after it succeeded. These have taken what they were given into account, and a run
 * that reads the state of its session has changed that. */
static bool repeatable(const frame *f, const char *function) {
  static const char *const once[] = {"qobserver_observe", "qobserver_merge",   "qmodel_calibrate",
                                     "qtrainer_step",     "qtrainer_backward", "qtrainer_update"};
  const json_t *inputs = json_object_get(f->with, "inputs");
  size_t i;
  if (strcmp(function, "qsession_run") == 0)
    for (i = 0; i < json_array_size(inputs); ++i)
      if (json_is_null(json_array_get(inputs, i))) return false;
  return !is_among(function, once, sizeof once / sizeof *once);
}

/* What a call that is made again has left: outputs, a report, a value, attributes. */
static void undo(frame *f, size_t handles, const qattrs *attrs) {
  for (size_t i = 0; i < f->output_count && f->output_kind != NOTHING; ++i) {
    handle made = {"", f->output_kind, f->outputs[i]};
    if (f->outputs[i] != (void *)f) free_handle(&made);
  }
  while (f->handle_count > handles) free_handle(&f->handles[--f->handle_count]);
  json_decref(f->result);
  f->result = NULL;
  if (f->attrs != attrs) {
    qtn.qattrs_free(f->attrs);
    f->attrs = NULL;
  }
  for (size_t i = 0; i < f->scratch_count; ++i) free(f->scratch[i]);
  f->scratch_count = 0;
}

/* A failure for want of memory, as the header says that it is. */
static bool is_right(frame *f, const char *function, long n, long before) {
  if (!strstr(qtn.qerror_message(), "memory")) return fault(function, n, "its message");
  for (size_t i = 0; i < f->output_count; ++i)
    if (f->output_kind != NOTHING && f->outputs[i]) return fault(function, n, "leaves an output");
  undo(f, f->handle_count, NULL);
  if (!keeps(function) && live_allocations() > before) return fault(function, n, "leaks");
  return true;
}

bool __wrap_call(frame *f, const char *function, qstatus *status) {
  struct record *record = record_of(function);
  const size_t handles = f->handle_count;
  qstatus other = QTN_ENOMEM;
  bool exhausted = true, known;
  long n = 1;
  set_aside();
  tested = function;
  ++record->calls;
  if (!walking) return __real_call(f, function, status);
  for (;;) {
    const long before = live_allocations();
    (for_good ? fail_new_from : fail_new)(n);
    known = __real_call(f, function, status);
    if (!stop_failing_new()) break;
    ++record->points;
    if (*status != QTN_OK && *status != QTN_ENOMEM) other = *status;
    record->survived += *status != QTN_ENOMEM || is_right(f, function, n, before);
    if (*status == QTN_OK && !repeatable(f, function)) {
      exhausted = false;
      break;
    }
    undo(f, handles, NULL);
    if (n > dense) exhausted = false;
    n += n > dense ? n / 10 + 1 : 1;
  }
  /* Where a call fails in any case, it may have found out before it missed the memory. */
  if (other != QTN_ENOMEM && other != *status) {
    --record->survived;
    (void)fault(function, 0, qtn.qstatus_name(other));
  }
  record->exhausted += exhausted;
  return known;
}

static void print(void) {
  printf("# function calls points survived exhausted\n");
  for (size_t i = 0; i < record_count; ++i)
    printf("%s %ld %ld %ld %ld\n", records[i].name, records[i].calls, records[i].points, records[i].survived,
           records[i].exhausted);
}

int main(int argc, char **argv) {
  long before;
  if (argc > 1 && strcmp(argv[argc - 1], "--for-good") == 0) {
    for_good = true;
    --argc;
  }
  if (argc > 2 && strcmp(argv[argc - 2], "--dense") == 0) {
    dense = atol(argv[argc - 1]);
    argc -= 2;
  }
  if (conformance_main(argc, argv) != 0) return 1; /* what the library makes once and keeps is made here */
  memset(records, 0, sizeof records);
  record_count = 0;
  before = live_allocations();
  walking = true;
  if (conformance_main(argc, argv) != 0) ++faults;
  print();
  if (live_allocations() != before) {
    fprintf(stderr, "walk_allocations: %ld allocations before, %ld after\n", before, live_allocations());
    ++faults;
  }
  return faults == 0 ? 0 : 1;
}
