// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"

using namespace qtn::capi;

const void *qblob_data(const qblob *b) { return alive(b) ? b->bytes.c_str() : nullptr; }
size_t qblob_size(const qblob *b) { return alive(b) ? b->bytes.size() : 0; }
void qblob_free(qblob *b) { delete alive(b); }
