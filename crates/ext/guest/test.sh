#!/usr/bin/env bash
# Builds cosched with the scheduler for the kernel, and tries both in a guest: what must hold (accept.sh), and the scenarios
# that every backend plays. Says "skipped, because" where that can't be done.
#
#   test.sh [KILLS] [CPUS] [SCENARIO...]    default: 5 kills, 4 CPUs, all scenarios with this scheduler; - for none
#
# CHECKS: which checks of accept.sh are made; default all. BOOT: more options of guest/boot.sh, as "-s cores=4,threads=1" or
# "-k 7.3.4+deb13-amd64".
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
top=$here/../../..
kills=${1:-5} cpus=${2:-4}
shift $(($# < 2 ? $# : 2))
[ $# -gt 0 ] || set -- sched-ext::
cd "$top"
for tool in qemu-system-x86_64 busybox cpio dpkg-deb; do
    command -v $tool >/dev/null || { echo "guest tests skipped, because there is no $tool"; exit 0; }
done
ls /usr/include/libelf.h /usr/include/zlib.h >/dev/null 2>&1 ||
    { echo "guest tests skipped, because there is no libelf or zlib to build with"; exit 0; }
for clang in ${CLANG:-clang clang-21 clang-20 clang-19 clang-18 clang-17 clang-16}; do
    major=$("$clang" -dM -E -xc /dev/null 2>/dev/null | sed -n 's/^#define __clang_major__ //p' || true)
    if [ "${major:-0}" -ge 16 ] && "$clang" --print-targets | grep -q bpf; then found=$clang; break; fi
done
[ -n "${found:-}" ] || { echo "guest tests skipped, because there is no clang 16 or later for BPF"; exit 0; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cargo test --quiet -p cosched-ext --features bpf
cargo build --quiet -p cosched --features sched-ext
strip -s -o "$work/cosched" "${CARGO_TARGET_DIR:-target}/debug/cosched"
files=(-f "$work/cosched" -f "$here/accept.sh")
if [ "$1" != - ]; then
    built=$(cargo test --quiet --no-run -p cosched --features sched-ext --test conformance --message-format=json 2>/dev/null |
        grep -o '"executable":"[^"]*conformance[^"]*"' | cut -d'"' -f4 | tail -n 1)
    strip -s -o "$work/conformance" "$built"
    files+=(-f "$work/conformance")
fi
echo "export CHECKS='${CHECKS:-}'" >"$work/both.sh"
cat >>"$work/both.sh" <<'SCRIPT'
sh /data/accept.sh "$1" || failed=1
shift
export COSCHED_TEST_PATIENCE_S=900
[ "$1" = - ] || { cd /tmp && conformance "$@" || failed=1; }
exit ${failed:-0}
SCRIPT
for tool in chrt nice stress-ng hackbench; do
    [ -z "$(command -v $tool)" ] || files+=(-f "$(command -v $tool)")
done
code=0
# shellcheck disable=SC2086 # options are words
"$top/guest/boot.sh" -c "$cpus" ${BOOT:-} -t 3000 "${files[@]}" "$work/both.sh" "$kills" "$@" || code=$?
case $code in
    77) echo "guest tests skipped, because of what stands above" ;;
    *) exit $code ;;
esac
