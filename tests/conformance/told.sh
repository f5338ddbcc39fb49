#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a command and keeps what it says in a file. usage: told.sh FILE COMMAND...
file=$1
shift
mkdir -p "$(dirname "$file")"
"$@" > "$file" 2>&1
status=$?
cat "$file"
exit $status
