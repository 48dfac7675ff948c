#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make bench: see run.py.
exec "${PYTHON:-python3}" "$(dirname "$0")/run.py" "$@"
