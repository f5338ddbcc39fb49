#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the library exports equals symbols.txt. Usage: check_symbols.sh LIBRARY SYMBOLS_TXT
set -eu
exported=$(nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort)
listed=$(awk '{ print $1 }' "$2" | sort)
if ! diff <(echo "$listed") <(echo "$exported"); then
  echo "the library (>) exports other symbols than symbols.txt (<) lists"
  exit 1
fi
echo "$(echo "$listed" | wc -l) symbols, as listed"
