#!/bin/bash -eu
# Run by OSS-Fuzz, which says by CC, CXX, CFLAGS and CXXFLAGS how, and by LIB_FUZZING_ENGINE with what.
cmake -G Ninja -S "$SRC/qtensor" -B build -DCMAKE_BUILD_TYPE=None \
  -DCMAKE_BUILD_RPATH='$ORIGIN/lib' -DQTN_FUZZ=ON -DQTN_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" \
  -DQTN_TESTS=OFF -DQTN_TOOLS=OFF -DQTN_PYTHON=OFF -DQTN_JAVA=OFF -DQTN_CSHARP=OFF -DQTN_STATIC=OFF
cmake --build build --target fuzz_targets

mkdir -p "$OUT/lib"
cp build/capi/libqtensor.so.* "$OUT/lib"
for program in build/tests/fuzz/fuzz_*; do
  [[ -f $program && -x $program ]] || continue
  name=${program##*/fuzz_}
  [[ $name != schemas ]] || continue
  cp "$program" "$OUT/"
  for dictionary in "tests/fuzz/$name.dict" "build/tests/fuzz/$name.dict"; do
    [[ ! -f $dictionary ]] || cp "$dictionary" "$OUT/fuzz_$name.dict"
  done
  seeds=$(mktemp -d)
  for folder in "tests/fuzz/corpus/$name" $([[ $name != model ]] || echo tests/golden/hostile tests/golden/others) \
    $([[ $name != safetensors && $name != npy ]] || echo tests/golden/files); do
    [[ ! -d $folder ]] || cp "$folder"/* "$seeds"
  done
  (cd "$seeds" && zip -q "$OUT/fuzz_${name}_seed_corpus.zip" -r .)
done
