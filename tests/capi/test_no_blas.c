/* SPDX-License-Identifier: Apache-2.0
 *
 * Where no BLAS can be loaded, products of floats say so, each time, and the rest works. Run with an LD_LIBRARY_PATH
 * that has files of the right names which are no libraries. */
#include "check.h"

static void only_products_of_floats_fail(void **state) {
  static const float values[] = {1, -2, 3, -4}, positive[] = {1, 0, 3, 0};
  qtensor *x = FLOATS(values, DIMS(2, 2)), *y = NULL;
  const qtensor *inputs[] = {x, x};
  (void)state;
  FAILS(QTN_EUNSUPPORTED, "/libopenblas.so.0: ", qop_run(&y, 1, "MatMul", inputs, 2, NULL));
  FAILS(QTN_EUNSUPPORTED, "/libblas.so.3: ", qop_run(&y, 1, "MatMul", inputs, 2, NULL));
  OK(qop_run(&y, 1, "Relu", inputs, 1, NULL));
  check_floats(y, positive, 4, 0);
  qtensor_free(x);
  qtensor_free(y);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(only_products_of_floats_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
