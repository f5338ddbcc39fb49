#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library without symbols and debug information is at most so many bytes. Usage: check_size.sh LIBRARY BYTES
set -eu
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$1"
bytes=$(stat -c %s "$stripped")
echo "stripped, $1 has $bytes bytes; $2 are allowed"
((bytes <= $2))
