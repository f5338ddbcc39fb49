#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program that was built with the last tagged version runs with this library: functions keep their names, parameters,
# results and the numbers of their enumerations; new ones may come.
# Usage: check_abi.sh LIBRARY HEADERS RECORD        compares with the record of the tagged version
#        check_abi.sh LIBRARY HEADERS RECORD new    writes that record (CONTRIBUTING.md, Release)
set -eu
library=$1 headers=$2 record=$3
describe=(--exported-interfaces-only --drop-private-types --headers-dir "$headers")

if [ "${4:-}" = new ]; then
  abidw "${describe[@]}" --no-corpus-path --no-comp-dir-path --no-show-locs --no-elf-needed --type-id-style hash \
    --out-file "$record" "$library"
  exit
fi
command -v abidiff > /dev/null || { echo "abidiff is missing: Debian's abigail-tools"; exit 77; }
readelf -h "$library" | grep -q X86-64 || { echo "the record is of x86-64"; exit 77; }
abidiff --fail-no-debug-info --exported-interfaces-only --drop-private-types --headers-dir2 "$headers" --no-added-syms \
  "$record" "$library"
echo "$(grep -c '<elf-symbol .*func-type' "$record") functions are as they were"
