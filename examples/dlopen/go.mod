module qtensor.org/examples/dlopen

go 1.19

require github.com/ebitengine/purego v0.10.0
