// SPDX-License-Identifier: Apache-2.0
// libjpeg and libpng report errors by longjmp. Each decoder therefore keeps whatever has a destructor in its caller.
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>

// clang-format off: jpeglib.h needs what <cstdio> declares
#include <jerror.h>
#include <jpeglib.h>
// clang-format on

#include "data/images.hpp"

namespace tool {

namespace {

constexpr size_t kMaxPixels = 100'000'000;  // some bytes of a hostile file must not ask for all memory

struct Target {
  Image &image;
  const Bytes &file;
  char message[JMSG_LENGTH_MAX];
  size_t at = 0;
  std::jmp_buf jump;

  Target(Image &to, const Bytes &from) : image(to), file(from), message{} {}

  [[noreturn]] void fail(const char *text) {
    std::snprintf(message, sizeof message, "%s", text);
    std::longjmp(jump, 1);
  }

  /// Decoders take memory for an image before they give its first row.
  void check_size(size_t width, size_t height) {
    if (width == 0 || height == 0 || width > kMaxPixels / height) fail("has an unreasonable size");
  }

  void reserve(size_t width, size_t height) {
    check_size(width, height);
    image.width = width;
    image.height = height;
    if (!has_room(3 * width * height)) fail("needs more memory than there is");
  }

 private:
  /// An exception would pass the decoder by, which has memory of its own.
  bool has_room(size_t bytes) {
    try {
      image.rgb.resize(bytes);
      return true;
    } catch (const std::bad_alloc &) {
      return false;
    }
  }
};

Target &target_of(j_common_ptr info) { return *static_cast<Target *>(info->client_data); }

void jpeg_fail(j_common_ptr info) {
  char text[JMSG_LENGTH_MAX];
  info->err->format_message(info, text);
  target_of(info).fail(text);
}

// libjpeg pads a file that ends too early with grey and goes on; samples made of padding would spoil a calibration.
void jpeg_message(j_common_ptr info, int level) {
  if (level < 0 && (info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER)) jpeg_fail(info);
}

// A few bytes are a scan over all of an image: honest files have about ten.
void jpeg_progress(j_common_ptr info) {
  constexpr int kMaxScans = 200;
  if (info->is_decompressor && reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMaxScans)
    target_of(info).fail("has an unreasonable number of scans");
}

bool decode_jpeg(Target &target) {
  jpeg_decompress_struct info;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress{};
  progress.progress_monitor = jpeg_progress;
  std::memset(&info, 0, sizeof info);
  info.err = jpeg_std_error(&errors);
  errors.error_exit = jpeg_fail;
  errors.emit_message = jpeg_message;
  info.client_data = &target;
  if (setjmp(target.jump) != 0) {
    jpeg_destroy_decompress(&info);
    return false;
  }
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, target.file.data(), static_cast<unsigned long>(target.file.size()));
  jpeg_read_header(&info, TRUE);
  target.check_size(info.image_width, info.image_height);
  info.progress = &progress;
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  target.reserve(info.output_width, info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = target.image.rgb.data() + size_t{3} * info.output_width * info.output_scanline;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
  return true;
}

void png_fail(png_structp png, png_const_charp text) { static_cast<Target *>(png_get_error_ptr(png))->fail(text); }

void png_ignore(png_structp, png_const_charp) {}

void png_source(png_structp png, png_bytep out, size_t count) {
  Target &target = *static_cast<Target *>(png_get_io_ptr(png));
  if (count > target.file.size() - target.at) target.fail("ends too early");
  std::memcpy(out, target.file.data() + target.at, count);
  target.at += count;
}

bool decode_png(Target &target) {
  png_structp volatile png = nullptr;
  png_infop volatile info = nullptr;
  const auto destroy = [&] {
    png_structp the_png = png;
    png_infop the_info = info;
    png_destroy_read_struct(&the_png, &the_info, nullptr);
  };
  if (setjmp(target.jump) != 0) {
    destroy();
    return false;
  }
  png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &target, png_fail, png_ignore);
  if (png == nullptr) target.fail("out of memory");
  info = png_create_info_struct(png);
  if (info == nullptr) target.fail("out of memory");
  png_set_read_fn(png, &target, png_source);
  png_read_info(png, info);
  target.check_size(png_get_image_width(png, info), png_get_image_height(png, info));
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const size_t width = png_get_image_width(png, info), height = png_get_image_height(png, info);
  target.reserve(width, height);
  if (png_get_rowbytes(png, info) != 3 * width) target.fail("cannot be brought to RGB");
  for (int pass = 0; pass < passes; ++pass)
    for (size_t y = 0; y < height; ++y) png_read_row(png, target.image.rgb.data() + 3 * width * y, nullptr);
  png_read_end(png, nullptr);
  destroy();
  return true;
}

bool begins_with(const Bytes &bytes, const char *magic, size_t count) {
  return bytes.size() >= count && std::memcmp(bytes.data(), magic, count) == 0;
}

}  // namespace

Image decode_image(const std::string &path) {
  const Bytes file = read_file(path);
  Image image;
  Target target(image, file);
  bool done = false;
  if (begins_with(file, "\xff\xd8\xff", 3)) {
    done = decode_jpeg(target);
  } else if (begins_with(file, "\x89PNG\r\n\x1a\n", 8)) {
    done = decode_png(target);
  } else {
    std::snprintf(target.message, sizeof target.message, "%s", "is neither JPEG nor PNG");
  }
  if (!done) throw Failure(path + ": is not an image that can be read: " + target.message);
  return image;
}

}  // namespace tool
