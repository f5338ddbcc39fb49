// SPDX-License-Identifier: Apache-2.0
// Owners for the handles of the C API, and statuses as exceptions.
#pragma once

#include <qtensor/qtensor.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace tool {

/// The work could not be done: exit code 1.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The command line asks for something that makes no sense: exit code 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T *handle) const {
    Free(handle);
  }
};

using Tensor = std::unique_ptr<qtensor, Freer<qtensor_free>>;
using Attrs = std::unique_ptr<qattrs, Freer<qattrs_free>>;
using Config = std::unique_ptr<qconfig, Freer<qconfig_free>>;
using Model = std::unique_ptr<qmodel, Freer<qmodel_free>>;
using Session = std::unique_ptr<qsession, Freer<qsession_free>>;
using Trainer = std::unique_ptr<qtrainer, Freer<qtrainer_free>>;
using Blob = std::unique_ptr<qblob, Freer<qblob_free>>;

inline void check(qstatus status) {
  if (status != QTN_OK) throw Failure(qerror_message());
}

/// For what the command line names: a name that is not known is its fault.
inline void check_named(qstatus status) {
  if (status == QTN_EINVAL || status == QTN_EUNSUPPORTED) throw UsageError(qerror_message());
  check(status);
}

/// make<Model>(qmodel_load, path): calls a function that returns its handle through the first parameter.
template <typename Handle, typename Function, typename... Args>
Handle make(Function function, Args &&...args) {
  typename Handle::pointer handle = nullptr;
  check(function(&handle, std::forward<Args>(args)...));
  return Handle(handle);
}

inline std::string text_of(const qblob *blob) {
  return std::string(static_cast<const char *>(qblob_data(blob)), qblob_size(blob));
}

}  // namespace tool
