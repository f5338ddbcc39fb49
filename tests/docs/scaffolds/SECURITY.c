/* What the page shows, in a program. */
#include <qtensor/qtensor.h>

int main(void) {
//@ 1
  return qlib_set_limits(NULL) != QTN_OK;
}
