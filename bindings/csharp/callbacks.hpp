// SPDX-License-Identifier: Apache-2.0
// Functions of C# that the library calls. No exception of C# comes through them: they keep it (Callbacks.cs) and answer
// 0.
#pragma once

#include "values.hpp"

namespace qcs {

/// Adds tensors to `tensors` with Tensor.Give; 0 when it could not.
using SampleFunction = int32_t (*)(int64_t index, void *tensors);
using BatchFunction = int32_t (*)(int64_t epoch, int64_t index, void *tensors);
using ProgressFunction = int32_t (*)(const char *stage, int64_t size, int64_t done, int64_t total);
/// An Answer.
using TrainingFunction = int32_t (*)(const char *stage, int64_t size, int64_t done, int64_t total, double loss);

/// True or false of a call, which it tells itself what has been thrown. Below 0 where there was no memory to tell it.
using CallFunction = int32_t (*)(const qtn::Call *call);
using ReleasedFunction = void (*)();

inline void need(int32_t answer) {
  if (!answer) throw qtn::Error(QTN_ECANCELED, "a callback has thrown");
}

class Samples final : public qtn::Samples {
 public:
  Samples(SampleFunction function, size_t count) : function_(function), count_(count) {}
  size_t count() override { return count_; }
  qtn::Tensors sample(size_t index) override {
    qtn::Tensors tensors;
    need(function_(static_cast<int64_t>(index), &tensors));
    return tensors;
  }

 private:
  SampleFunction function_;
  size_t count_;
};

class Progress final : public qtn::Progress {
 public:
  explicit Progress(ProgressFunction function) : function_(function) {}
  bool advance(const std::string &stage, size_t done, size_t total) override {
    return function_(stage.data(), static_cast<int64_t>(stage.size()), static_cast<int64_t>(done),
                     static_cast<int64_t>(total)) != 0;
  }

 private:
  ProgressFunction function_;
};

class Batches final : public qtn::Batches {
 public:
  Batches(BatchFunction function, size_t count, size_t target_count)
      : function_(function), count_(count), target_count_(target_count) {}
  size_t count() override { return count_; }
  size_t target_count() override { return target_count_; }
  qtn::Tensors batch(size_t epoch, size_t index) override {
    qtn::Tensors tensors;
    need(function_(static_cast<int64_t>(epoch), static_cast<int64_t>(index), &tensors));
    return tensors;
  }

 private:
  BatchFunction function_;
  size_t count_, target_count_;
};

class TrainingProgress final : public qtn::TrainingProgress {
 public:
  explicit TrainingProgress(TrainingFunction function) : function_(function) {}
  Answer advance(const std::string &stage, size_t done, size_t total, double loss) override {
    return static_cast<Answer>(function_(stage.data(), static_cast<int64_t>(stage.size()), static_cast<int64_t>(done),
                                         static_cast<int64_t>(total), loss));
  }

 private:
  TrainingFunction function_;
};

/// Its own, until the library lets go of it.
class Operator final : public qtn::Operator {
 public:
  Operator(CallFunction infer, CallFunction run, CallFunction run_quantized, ReleasedFunction released)
      : infer_(infer), run_(run), run_quantized_(run_quantized), released_(released) {}
  bool infer(const qtn::Call &call) override { return is_true(infer_(&call)); }
  void run(const qtn::Call &call) override { is_true(run_(&call)); }
  bool has_quantized() override { return run_quantized_; }
  bool run_quantized(const qtn::Call &call) override { return is_true(run_quantized_(&call)); }
  void released() override {
    const ReleasedFunction told = released_;
    delete this;
    told();
  }

 private:
  static bool is_true(int32_t answer) {
    if (answer < 0) throw std::bad_alloc();
    return answer != 0;
  }

  CallFunction infer_, run_, run_quantized_;
  ReleasedFunction released_;
};

}  // namespace qcs
