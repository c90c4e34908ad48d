#!/bin/bash
# fuzz.sh BUILD_FOLDER SECONDS [TARGET]: runs the fuzz targets from their committed seeds. What a
# target finds stays in BUILD_FOLDER/found-TARGET; what it learns, in BUILD_FOLDER/corpus-TARGET. As
# many run at once as there are processors, or JOBS.
set -euo pipefail
build="$1" seconds="$2" only="${3:-}"

run() {
  local program="$1" target seeds learned found
  target="$(basename "$program" _fuzz)"
  seeds="fuzz/corpus/$target"
  learned="$build/corpus-$target" found="$build/found-$target/"
  [ -d "$seeds" ] || { echo "fuzz.sh: $target has no seeds: $seeds is not there" >&2; return 1; }
  mkdir -p "$learned" "$found"
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$found" "$learned" "$seeds" > "$build/fuzz-$target.log" 2>&1 || {
    tail -n 60 "$build/fuzz-$target.log" >&2
    echo "fuzz.sh: $target failed; its input is in $found" >&2
    return 1
  }
  grep -E '^(stat::number_of_executed_units|Done )' "$build/fuzz-$target.log" |
    sed "s/^/$target: /"
}

programs=()
for program in "$build"/*_fuzz; do
  [ -x "$program" ] || continue
  [ -z "$only" ] || [ "$(basename "$program")" = "${only}_fuzz" ] || continue
  programs+=("$program")
done
[ "${#programs[@]}" -gt 0 ] || { echo "fuzz.sh: no target ${only:-at all} in $build" >&2; exit 1; }
export -f run
export build seconds
printf '%s\0' "${programs[@]}" |
  xargs -0 -n 1 -P "${JOBS:-$(nproc)}" bash -euo pipefail -c 'run "$1"' run
echo "fuzz.sh: ${#programs[@]} targets, nothing found"
