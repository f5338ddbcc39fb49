#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the library exports equals symbols.txt. In the static one these are all symbols that a program can meet, and hidden,
# so that nothing exports them. Usage: check_symbols.sh LIBRARY SYMBOLS_TXT
set -eu
if [[ $1 == *.a ]]; then
  exported=$(readelf -sW "$1" | awk '$5 != "LOCAL" && $7 ~ /^[0-9]/ { print $6 == "HIDDEN" ? $8 : $8 " is not hidden" }' | sort)
else
  exported=$(nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
fi
listed=$(awk '{ print $1 }' "$2" | sort)
if ! diff <(echo "$listed") <(echo "$exported"); then
  echo "the library (>) exports other symbols than symbols.txt (<) lists"
  exit 1
fi
echo "$(echo "$listed" | wc -l) symbols, as listed"
