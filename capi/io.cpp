// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"
#include "io/npy.hpp"
#include "io/safetensors.hpp"

using namespace qtn;
using namespace qtn::capi;

namespace {

constexpr const char *kOneTensor = "tensor";  // the name of the one that qtensor_save writes

io::TensorFile open_any(const std::string &path) {
  return path.ends_with(".npy") ? io::open_npy(path) : io::open_safetensors(path);
}

}  // namespace

qstatus qtensor_save(const qtensor *t, const char *path) {
  return guard(__func__, [&](const char *entry) {
    need(entry, t, "t");
    need(entry, path, "path");
    io::save_safetensors(path, {{{kOneTensor, &t->value}}});
  });
}

qstatus qtensor_load(qtensor **out, const char *path) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, path, "path");
    const io::TensorFile file = io::open_safetensors(path);
    *out = new qtensor(file.read(file.only()));
  });
}

qstatus qtensor_save_all(const char *path, const char *const *names, const qtensor *const *tensors, size_t count) {
  return guard(__func__, [&](const char *entry) {
    need(entry, path, "path");
    need_array(entry, names, count, "names");
    need_array(entry, tensors, count, "tensors");
    std::vector<io::NamedTensor> all;
    for (std::size_t i = 0; i < count; ++i) {
      if (!names[i]) fail(QTN_EINVAL, entry, ": names[", i, "] is NULL");
      if (!tensors[i]) fail(QTN_EINVAL, entry, ": tensors[", i, "] is NULL");
      check_live(tensors[i], "an element of tensors");
      all.push_back({names[i], &tensors[i]->value});
    }
    io::save_safetensors(path, all);
  });
}

qstatus qtensor_load_named(qtensor **out, const char *path, const char *name) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, path, "path");
    need(entry, name, "name");
    const io::TensorFile file = io::open_safetensors(path);
    *out = new qtensor(file.read(file.named(name)));
  });
}

qstatus qtensor_save_npy(const qtensor *t, const char *path) {
  return guard(__func__, [&](const char *entry) {
    need(entry, t, "t");
    need(entry, path, "path");
    io::save_npy(path, t->value);
  });
}

qstatus qtensor_load_npy(qtensor **out, const char *path) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, path, "path");
    const io::TensorFile file = io::open_npy(path);
    *out = new qtensor(file.read(file.only()));
  });
}

qstatus qtensor_load_rows(qtensor **out, const char *path, const char *name, int64_t start, int64_t stop) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, path, "path");
    const io::TensorFile file = open_any(path);
    *out = new qtensor(file.read_rows(name ? file.named(name) : file.only(), start, stop));
  });
}

qstatus qtensor_inspect(qblob **out, const char *path) {
  clear(out);
  return guard(__func__, [&](const char *entry) {
    need(entry, out, "out");
    need(entry, path, "path");
    *out = new qblob{io::inspect_json(open_any(path))};
  });
}
