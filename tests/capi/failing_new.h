/* SPDX-License-Identifier: Apache-2.0
 *
 * operator new of a program that links failing_new.cpp and exports its symbols: the library takes it from there, and
 * it fails when it is told to. */
#ifndef QTN_TESTS_CAPI_FAILING_NEW_H
#define QTN_TESTS_CAPI_FAILING_NEW_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The n-th allocation from now on fails, on whatever thread, and only that. */
void fail_new(long n);

/** The n-th allocation from now on fails, and all after it. */
void fail_new_from(long n);

/** No allocation fails any more. Whether one has since fail_new(). */
bool stop_failing_new(void);

/** For what a test does meanwhile: allocations of its own neither count nor fail. Gives what go_on_failing_new() takes.
 */
long pause_failing_new(void);
void go_on_failing_new(long left);

/** Allocations that were not freed yet. */
long live_allocations(void);

#ifdef __cplusplus
}
#endif

#endif
