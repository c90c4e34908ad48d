#!/bin/bash
# clang_checks.sh format            clang-format over every C++ file of the repository
# clang_checks.sh tidy BUILD JOBS   clang-tidy over every .cc file that the build folder compiles
set -euo pipefail
cd "$(dirname "$0")/.."

check_format() {
  local sources
  mapfile -t sources < <(git ls-files -co --exclude-standard -- '*.cc' '*.h' | sort -u |
    while read -r file; do [ ! -f "$file" ] || echo "$file"; done)
  [ ${#sources[@]} -gt 0 ] || { echo "clang_checks.sh: no sources" >&2; return 1; }
  clang-format --dry-run -Werror "${sources[@]}"
  echo "clang-format: ${#sources[@]} files are formatted"
}

# The test macros of GoogleTest make the globals that one of the checks is there to find, and the
# tests of a folder are compiled as one file that includes them. The build may name warnings that
# only g++ has.
tidy_one() {
  local options=(--quiet -p "$1" --extra-arg=-Wno-unknown-warning-option)
  local not_of_tests="-bugprone-suspicious-include"
  not_of_tests+=",-cppcoreguidelines-avoid-non-const-global-variables"
  [[ "$2" != *_test.cc && "$2" != */Unity/* ]] || options+=("--checks=$not_of_tests")
  clang-tidy "${options[@]}" "$2" 2> >(grep -v ' warnings\? generated' >&2)
}

check_tidy() {
  local build="$1" jobs="$2" list
  list="$(python3 -c '
import json, sys
print("\n".join(sorted({entry["file"] for entry in json.load(open(sys.argv[1]))})))
' "$build/compile_commands.json")"
  export -f tidy_one
  xargs -d '\n' -P "$jobs" -I '{}' bash -c 'tidy_one "$@"' tidy_one "$build" '{}' <<< "$list"
  echo "clang-tidy: $(wc -l <<< "$list") files, nothing found"
}

case "${1:-}" in
  format) check_format ;;
  tidy) check_tidy "$2" "${3:-2}" ;;
  *) sed -n 2,3p "$0" >&2; exit 2 ;;
esac
