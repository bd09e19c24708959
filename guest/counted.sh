#!/usr/bin/env bash
# Tests cosched in a guest whose counters count, by a law (guest/law). Says "skipped, because" where that can't be done.
#
#   counted.sh [-b COSCHED] [-k KERNEL] [TEST...] [OPTION...]    TEST: a part of the names of tests, default all; OPTION: of their program, after a TEST
#   counted.sh [-b COSCHED] -p                                   compares all policies, and writes results/counted-guest.md from that
#
# -b  another program than the one that is built here from these sources
# -k  a kernel with sched_ext, as 7.3.4+deb13-cloud-amd64: cosched is built with the scheduler for it, and kernel:: is tested, too
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cosched= page= seconds=900 release=6.12.95+deb12-cloud-amd64 features=()
while getopts b:k:p option; do
    case $option in
        b) cosched=$OPTARG ;;
        k) release=$OPTARG features=(--features sched-ext) ;;
        p) page=results/counted-guest.md seconds=7200 ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
cd "$here/.."
[ -z "$page" ] || set -- policies::compare --exact --ignored --nocapture
for tool in qemu-system-x86_64 busybox cpio dpkg-deb gcc make; do
    command -v $tool >/dev/null || { echo "counted guest skipped, because there is no $tool"; exit 0; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
built=$(cargo test --quiet --release --no-run -p cosched "${features[@]}" --test counted --message-format=json |
    grep -o '"executable":"[^"]*"' | cut -d'"' -f4)
strip -s -o "$work/counted" "$(grep '/deps/counted-' <<<"$built" | tail -n 1)"
strip -s -o "$work/cosched" "${cosched:-target/release/cosched}"
gcc -O1 -static -o "$work/hog" "$here/hog.c"
cat >"$work/script" <<'SCRIPT'
insmod /data/law.ko || exit 1
export COSCHED_UNDER_TEST=/data/cosched
cd /tmp && counted --test-threads=1 "$@"
SCRIPT
code=0
# The time of the guest goes by executed instructions: no figure depends on this machine.
"$here/boot.sh" -k "$release" -c 8 -s cores=4,threads=2 -i 1 -t "$seconds" -M "$here/law" \
    -f "$work/counted" -f "$work/cosched" -f "$work/hog" "$work/script" "$@" | tee "$work/said" || code=$?
if [ -n "$page" ] && [ $code = 0 ]; then
    sed -n '/^PAGE BEGIN$/,/^PAGE END$/{//!p}' "$work/said" >"$work/page"
    [ -s "$work/page" ] || { echo "the run made no page" >&2; exit 1; }
    cp "$work/page" "$page"
fi
case $code in
    77) echo "counted guest skipped, because of what stands above" ;;
    *) exit $code ;;
esac
