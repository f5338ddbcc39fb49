// SPDX-License-Identifier: Apache-2.0

// Quantizes a model and runs it from Go, without cgo: purego opens libqtensor.so.0.
//
//	go run quantize.go digits.onnx digits-int8.onnx calibration.npy
package main

import (
	"fmt"
	"os"

	"github.com/ebitengine/purego"
)

// The functions, by their names; a tensor, a model and so on is an address.
var (
	qerror_message   func() string
	qtensor_load_npy func(out *uintptr, path string) int32
	qmodel_load      func(out *uintptr, path string) int32
	qconfig_create   func(out *uintptr, name string) int32
	qmodel_prepare   func(out *uintptr, model, config uintptr, mode int32) int32
	qmodel_calibrate func(prepared uintptr, inputs *uintptr, count uint64) int32
	qmodel_convert   func(out *uintptr, prepared, attrs uintptr) int32
	qmodel_save      func(model uintptr, path string, attrs uintptr) int32
	qsession_create  func(out *uintptr, model, attrs uintptr) int32
	qsession_run     func(outputs *uintptr, outputCount uint64, session uintptr, inputs *uintptr, count uint64) int32
	qtensor_describe func(text *byte, size uint64, length *uint64, tensor uintptr) int32
)

func check(status int32) {
	if status != 0 {
		fail(qerror_message())
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 4 {
		fail("usage: quantize IN.onnx OUT.onnx SAMPLES.npy")
	}
	library, err := purego.Dlopen("libqtensor.so.0", purego.RTLD_NOW)
	if err != nil {
		fail(err)
	}
	for name, function := range map[string]any{
		"qerror_message": &qerror_message, "qtensor_load_npy": &qtensor_load_npy, "qmodel_load": &qmodel_load,
		"qconfig_create": &qconfig_create, "qmodel_prepare": &qmodel_prepare, "qmodel_calibrate": &qmodel_calibrate,
		"qmodel_convert": &qmodel_convert, "qmodel_save": &qmodel_save, "qsession_create": &qsession_create,
		"qsession_run": &qsession_run, "qtensor_describe": &qtensor_describe,
	} {
		purego.RegisterLibFunc(function, library, name)
	}

	var data, model, config, prepared, int8, session, scores uintptr
	check(qtensor_load_npy(&data, os.Args[3]))
	check(qmodel_load(&model, os.Args[1]))
	check(qconfig_create(&config, "onnx"))
	check(qmodel_prepare(&prepared, model, config, 0))
	check(qmodel_calibrate(prepared, &data, 1))
	check(qmodel_convert(&int8, prepared, 0))
	check(qmodel_save(int8, os.Args[2], 0))

	check(qsession_create(&session, int8, 0))
	check(qsession_run(&scores, 1, session, &data, 1))
	text, length := make([]byte, 2000), uint64(0)
	check(qtensor_describe(&text[0], uint64(len(text)), &length, scores))
	fmt.Println(string(text[:length]))
}
