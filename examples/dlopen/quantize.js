// SPDX-License-Identifier: Apache-2.0
//
// Quantizes a model and runs it from Node.js, through the foreign function interface koffi:
//
//     npm install koffi && node quantize.js digits.onnx digits-int8.onnx calibration.npy
"use strict";
const koffi = require("koffi");

const library = koffi.load("libqtensor.so.0");
const message = library.func("const char *qerror_message()");

// A function that returns a status, which is checked.
const declare = (declaration) => {
  const call = library.func("int " + declaration);
  return (...given) => {
    if (call(...given) !== 0) throw new Error(message());
  };
};
// What a function writes to its first parameter.
const made = (call, ...given) => {
  const out = [null];
  call(out, ...given);
  return out[0];
};

const loadData = declare("qtensor_load_npy(_Out_ void **out, const char *path)");
const loadModel = declare("qmodel_load(_Out_ void **out, const char *path)");
const createConfig = declare("qconfig_create(_Out_ void **out, const char *name)");
const prepare = declare("qmodel_prepare(_Out_ void **out, const void *model, const void *config, int mode)");
const calibrate = declare("qmodel_calibrate(void *prepared, void **inputs, size_t count)");
const convert = declare("qmodel_convert(_Out_ void **out, const void *prepared, const void *attrs)");
const save = declare("qmodel_save(const void *model, const char *path, const void *attrs)");
const createSession = declare("qsession_create(_Out_ void **out, const void *model, const void *attrs)");
const run = declare("qsession_run(_Out_ void **outputs, size_t output_count, const void *session, void **inputs, size_t count)");
const describe = declare("qtensor_describe(_Out_ char *text, size_t size, _Out_ size_t *length, const void *tensor)");

if (process.argv.length !== 5) {
  console.error("usage: node quantize.js IN.onnx OUT.onnx SAMPLES.npy");
  process.exit(2);
}
const [, , from, to, samples] = process.argv;
const data = made(loadData, samples);
const prepared = made(prepare, made(loadModel, from), made(createConfig, "onnx"), 0);
calibrate(prepared, [data], 1);
const int8 = made(convert, prepared, null);
save(int8, to, null);

const scores = made(run, 1, made(createSession, int8, null), [data], 1);
const text = ["\0".repeat(2000)];
describe(text, 2000, [0], scores);
console.log(text[0]);
