// SPDX-License-Identifier: Apache-2.0
#include "blas/library.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <list>
#include <mutex>
#include <new>
#include <string_view>
#include <vector>

#include "base/cpu.hpp"
#include "base/error.hpp"
#include "base/fork_gate.hpp"

namespace qtn::blas {
namespace {

template <class Function>
Function find(void *handle, const char *symbol) {
  return reinterpret_cast<Function>(dlsym(handle, symbol));
}

/// OpenBLAS starts its threads as it is loaded, and chooses its kernels then.
char kOneThread[] = "OPENBLAS_NUM_THREADS=1", kHaswell[] = "OPENBLAS_CORETYPE=Haswell",
     kSkylake[] = "OPENBLAS_CORETYPE=SkylakeX";

/// The environment with one variable as a library should find it that is loaded meanwhile. Another thread that reads the
/// environment sees the old list or this one, both whole.
class Environment {
 public:
  explicit Environment(char *variable) : old_(environ) {
    static std::list<std::vector<char *>> lists;  // stay: a thread may still look at one
    std::vector<char *> &list = lists.emplace_back(1, variable);
    const std::string_view name(variable, std::string_view(variable).find('=') + 1);
    for (char **entry = old_; entry && *entry; ++entry)
      if (!std::string_view(*entry).starts_with(name)) list.push_back(*entry);
    list.push_back(nullptr);
    environ = mine_ = list.data();
  }
  ~Environment() {
    if (environ == mine_) environ = old_;
  }
  Environment(const Environment &) = delete;
  Environment &operator=(const Environment &) = delete;

 private:
  char **old_, **mine_;
};

/// OpenBLAS takes a CPU that is younger than itself for one of 2004, unless told which one it is like. One that the
/// program has loaded before stays what it is.
void *open_library(const char *name) {
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  const auto core = handle ? find<const char *(*)()>(handle, "openblas_get_corename") : nullptr;
  if (!core || std::string_view(core()) != "Prescott" || !cpu_has(Isa::avx2) || std::getenv("OPENBLAS_CORETYPE"))
    return handle;
  dlclose(handle);
  const Environment environment(cpu_has(Isa::avx512) ? kSkylake : kHaswell);
  return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

Library load() {
  const Environment environment(kOneThread);
  std::string why;
  // The first is what a package for a language has beside this library.
  for (const char *name : {"$ORIGIN/libqtensor_openblas.so.0", "libopenblas.so.0", "libblas.so.3"}) {
    void *handle = open_library(name);
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

/// Products that compute now, and buffers that OpenBLAS has.
std::atomic<int> running{0}, buffers{0};
/// One product at a time makes OpenBLAS allocate.
std::atomic<bool> growing{false};

/// Only the thread that forks is there, and buffers that others had are not given back.
void forget_turns() {
  running = buffers = 0;
  growing = false;
}

bool fits_another() {
  constexpr std::size_t kBuffer = std::size_t{136} << 20;
  void *const room = mmap(nullptr, kBuffer, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return room != MAP_FAILED && munmap(room, kBuffer) == 0;
}

/// A product that is large enough to need a buffer.
void compute_one(const Library &blas) {
  constexpr int kSide = 128;
  std::vector<float> a(std::size_t{kSide} * kSide), c(a.size());
  blas.sgemm(kRowMajor, kPlain, kPlain, kSide, kSide, kSide, 1, a.data(), kSide, a.data(), kSide, 0, c.data(), kSide);
}

/// The first buffer, or an exception, where that may still be thrown.
void have_buffer(const Library &blas) {
  while (buffers.load(std::memory_order_acquire) == 0) {
    bool expected = false;
    if (!growing.compare_exchange_strong(expected, true)) {
      growing.wait(true);
      continue;
    }
    const bool fits = buffers == 0 && fits_another();
    try {
      if (fits) compute_one(blas);
    } catch (...) {
      growing = false;
      growing.notify_all();
      throw;
    }
    if (fits) ++buffers;
    growing = false;
    growing.notify_all();
    if (!fits && buffers == 0) throw std::bad_alloc();
  }
}

const Library &loaded_library() {
  static std::atomic<const Library *> ready{nullptr};
  if (const Library *found = ready.load(std::memory_order_acquire)) return *found;
  const NoFork section;  // a child must not wait for a thread that loads it
  static const Library loaded = [] {
    const Library found = load();
    pthread_atfork(nullptr, nullptr, forget_turns);
    return found;
  }();
  ready.store(&loaded, std::memory_order_release);
  return loaded;
}

}  // namespace

const Library &library() {
  const Library &blas = loaded_library();
  have_buffer(blas);
  return blas;
}

Turn::Turn() {
  for (;;) {
    int now = running.load();
    if (now < buffers.load()) {
      if (running.compare_exchange_weak(now, now + 1)) return;
      continue;
    }
    bool expected = false;
    if (growing.compare_exchange_strong(expected, true)) {
      if (fits_another()) {
        ++running;
        first_of_buffer_ = true;
        return;
      }
      growing = false;
      growing.notify_all();
    }
    running.wait(now);
  }
}

Turn::~Turn() {
  if (first_of_buffer_) {
    ++buffers;
    growing = false;
    growing.notify_all();
  }
  --running;
  running.notify_all();
}

}  // namespace qtn::blas
