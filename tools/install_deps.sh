#!/bin/bash
# install_deps.sh SET...: installs the Debian packages of the named sets that are missing.
# Asks apt only when something is missing, and for root rights only when it does not have them.
set -euo pipefail

build_packages=(
  cmake ninja-build g++ pkg-config
  libboost1.81-dev libboost-json1.81-dev libpcre2-dev libcli11-dev libfmt-dev libspdlog-dev
  libtomlplusplus-dev libedit-dev libcurl4-openssl-dev libssl-dev libzip-dev
  libgtest-dev libgmock-dev
)
test_packages=(
  clang clang-format clang-tidy libclang-rt-14-dev
  g++-aarch64-linux-gnu qemu-user-static googletest openssl
)
bench_packages=(libbenchmark-dev)

wanted=()
for set in "$@"; do
  case "$set" in
    build) wanted+=("${build_packages[@]}") ;;
    test) wanted+=("${test_packages[@]}") ;;
    bench) wanted+=("${bench_packages[@]}") ;;
    *) echo "install_deps.sh: no set '$set'; there are: build, test, bench" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query > /dev/null || ! command -v apt-get > /dev/null; then
  echo "install_deps.sh: this is no Debian system, so nothing is installed. Needed are" \
    "python3 with pip and what Debian calls: ${wanted[*]}" >&2
  exit 0
fi

missing=()
states="$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${wanted[@]}" 2> /dev/null || true)"
for package in "${wanted[@]}"; do
  grep -qxF "$package installed" <<< "$states" || missing+=("$package")
done
# Any Python with pip will do, Debian's or another.
python3 -c 'import pip' > /dev/null 2>&1 || missing+=(python3 python3-pip)

[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null || {
    echo "install_deps.sh: run as root: apt-get install ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "Installing: ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
