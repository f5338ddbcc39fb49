#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every function of C is reached from qtensor.hpp, and so from the languages that wrap it. Usage: check_facade.sh HEADER
# SYMBOLS_TXT
set -eu
missing=$(awk '{ print $1 }' "$2" | while read -r name; do grep -qw "$name" "$1" || echo "$name"; done)
if [ -n "$missing" ]; then
  echo "$1 does not call: $missing"
  exit 1
fi
echo "$(wc -l < "$2") functions are in $(basename "$1")"
