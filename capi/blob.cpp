// SPDX-License-Identifier: Apache-2.0
#include "handles.hpp"

const void *qblob_data(const qblob *b) { return b ? b->bytes.c_str() : nullptr; }
size_t qblob_size(const qblob *b) { return b ? b->bytes.size() : 0; }
void qblob_free(qblob *b) { delete b; }
