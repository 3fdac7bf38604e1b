#!/bin/sh
# Is all C formatted by .clang-format? `check_format.sh [CLANG_FORMAT]` says where not; with FIX=1 it formats instead.
cd "$(dirname "$0")/../.." || exit 2
files=$(git ls-files '*.c' '*.h' 'c/compute/*.inc')
# shellcheck disable=SC2086
if [ -n "${FIX-}" ]; then exec "${1:-clang-format}" -i $files; fi
# shellcheck disable=SC2086
"${1:-clang-format}" --dry-run --Werror $files && echo "formatted: $(echo "$files" | wc -w) files"
