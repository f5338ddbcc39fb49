// SPDX-License-Identifier: Apache-2.0
#include "data/shards.hpp"

#include <algorithm>

#include "data/file.hpp"
#include "shared/model.hpp"

namespace tool {

Shards::Shards(std::vector<Array> parts) : parts_(std::move(parts)) {
  const Array &first = parts_.front();
  size_t rows = 0;
  for (const Array &part : parts_) {
    if (part.shape.empty()) throw Failure(part.path + ": is a scalar; the first axis runs over samples");
    if (!std::equal(part.shape.begin() + 1, part.shape.end(), first.shape.begin() + 1, first.shape.end()))
      throw Failure(part.path + ": has shape " + shape_text(part.shape) + ", which does not continue " + first.path +
                    " of shape " + shape_text(first.shape));
    rows += part.rows();
    ends_.push_back(rows);
  }
}

std::vector<std::string> Shards::paths() const {
  std::vector<std::string> paths;
  for (const Array &part : parts_) paths.push_back(part.path);
  return paths;
}

Tensor Shards::read(size_t first, size_t count, qdtype wanted) const {
  const size_t end = first + count;
  std::vector<Tensor> found;
  for (size_t i = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), first) - ends_.begin());
       i < parts_.size() && first < end; ++i) {
    const size_t begin = ends_[i] - parts_[i].rows(), last = std::min(end, ends_[i]);
    if (first == last) continue;
    found.push_back(of_input(parts_[i].read(first - begin, last - first), wanted));
    first = last;
  }
  if (found.size() == 1) return std::move(found.front());
  if (found.empty()) return of_input(parts_.front().read(0, 0), wanted);
  const Attrs attrs = make<Attrs>(qattrs_create);
  check(qattrs_set_int(attrs.get(), "axis", 0));
  qtensor *joined = nullptr;
  check(qop_run(&joined, 1, "Concat", borrow(found).data(), found.size(), attrs.get()));
  return Tensor(joined);
}

std::vector<std::string> files_of(const std::string &pattern) {
  std::vector<std::string> found = matches_of(pattern);
  if (found.empty()) throw Failure(pattern + ": matches no file");
  return found;
}

}  // namespace tool
