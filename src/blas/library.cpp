// SPDX-License-Identifier: Apache-2.0
#include "blas/library.hpp"

#include <dlfcn.h>

#include "base/error.hpp"

namespace qtn::blas {
namespace {

template <class Function>
Function find(void *handle, const char *symbol) {
  return reinterpret_cast<Function>(dlsym(handle, symbol));
}

Library load() {
  std::string why;
  // The first is what a package for a language has beside this library.
  for (const char *name : {"$ORIGIN/libqtensor_openblas.so.0", "libopenblas.so.0", "libblas.so.3"}) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      why += cat("; ", dlerror());
      continue;
    }
    const Library found{find<Gemm<float>>(handle, "cblas_sgemm"), find<Gemm<double>>(handle, "cblas_dgemm")};
    if (!found.sgemm || !found.dgemm) {
      dlclose(handle);
      why += cat("; ", name, " has no cblas_sgemm and cblas_dgemm");
      continue;
    }
    // Our threads call it side by side: it must not have a second pool that competes with them.
    if (const auto set_threads = find<void (*)(int)>(handle, "openblas_set_num_threads")) set_threads(1);
    return found;
  }
  fail(QTN_EUNSUPPORTED, "products of floats need a BLAS, none can be loaded", why);
}

}  // namespace

const Library &library() {
  static const Library loaded = load();
  return loaded;
}

}  // namespace qtn::blas
