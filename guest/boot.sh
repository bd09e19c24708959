#!/usr/bin/env bash
# Boots a Debian kernel in QEMU, runs a script in it as root, and exits as the script does.
#
#   boot.sh [-k RELEASE] [-c CPUS] [-s SMP] [-m MEMORY] [-t SECONDS] [-i SHIFT] [-M FOLDER] [-f FILE]... SCRIPT [ARG]...
#
# -k  the kernel, by the name of its package without linux-image-; default 6.18.15+deb13-amd64, which has sched_ext
# -c  CPUs; default 4, two threads to a core
# -s  more of -smp, as in cores=2,threads=2
# -m  memory; default 2G
# -t  the guest is ended after this time; default 600
# -i  time goes by executed instructions, 2^SHIFT ns each, and jumps while all CPUs halt: it does not depend on the host
# -M  a folder with a kernel module, which is built for the kernel, and is /data/NAME.ko in the guest. For a kernel of another
#     release of Debian than this machine's it is built in a root with that release's compiler, which needs user namespaces
# -f  a program (with the libraries that it needs) or another file, for /data in the guest
#
# Exits with 77, and says why on the last line, where QEMU, the kernel, its headers or busybox can't be had. What is fetched is
# kept in $COSCHED_GUEST, by default target/guest beside the sources.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${COSCHED_GUEST:-$here/../target/guest}
THREADS=${COSCHED_GUEST_THREADS:-single}
release=6.18.15+deb13-amd64 cpus=4 smp= memory=2G seconds=600 shift= module= files=()
while getopts k:c:s:m:t:i:M:f: option; do
    case $option in
        k) release=$OPTARG ;;
        c) cpus=$OPTARG ;;
        s) smp=,$OPTARG ;;
        m) memory=$OPTARG ;;
        t) seconds=$OPTARG ;;
        i) shift=$OPTARG ;;
        M) module=$OPTARG ;;
        f) files+=("$OPTARG") ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ -n "$smp" ] || smp=,cores=$((cpus / 2)),threads=2

skip() {
    echo "skipped, because $*"
    exit 77
}
for tool in qemu-system-x86_64 busybox cpio dpkg-deb ldd; do
    command -v $tool >/dev/null || skip "there is no $tool (Debian: qemu-system-x86 busybox-static cpio)"
done

case $release in
    *+deb12*) suite=bookworm ;;
    *) suite=trixie ;;
esac

# Sets up an apt of its own for suites: the machine's lists and sources stay as they are.
prepare_apt() {
    command -v apt-get >/dev/null || skip "there is no apt-get to fetch the kernel with"
    apt=$cache/apt-$1
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    mirror=$(sed -n 's/^\(URIs: \|deb \)\(\[[^]]*\] \)\?\(http[^ ]*debian\/\?\)\( .*\)\?$/\3/p' \
        /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -v security | head -n 1 || true)
    [ -n "$mirror" ] || skip "no Debian mirror is set up here"
    printf "deb $mirror %s main\n" "$@" >"$apt/sources.list"
    with=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$apt/lists"
        -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
    apt-get update -qq "${with[@]}" >&2 || skip "the package lists can't be fetched"
}

# Unpacks a package into a folder.
unpack() {
    (cd "$apt" && apt-get download -qq "${with[@]}" "$1" >&2) || return 1
    dpkg-deb -x "$apt/$1"_*.deb "$2"
    rm -f "$apt/$1"_*.deb
}

kernel=$cache/$release
if [ ! -e "$kernel/boot/vmlinuz-$release" ]; then
    prepare_apt "$suite-backports"
    unpacked=$apt/unpacked
    rm -rf "$unpacked" "$kernel.new"
    mkdir -p "$kernel.new/boot" "$unpacked"
    # Since Linux 7.0 the kernel and its configuration are in packages beside that of the image.
    for part in image binary base; do
        unpack "linux-$part-$release" "$unpacked" || continue
    done
    for file in vmlinuz config; do
        found=$(find "$unpacked" -type f \( -name "$file-$release" -o -path "*$release*/$file" \) | head -n 1)
        [ -n "$found" ] || skip "no package has the $file of Linux $release"
        cp "$found" "$kernel.new/boot/$file-$release"
    done
    # The modules are not needed.
    rm -rf "$unpacked"
    mv "$kernel.new" "$kernel"
fi

headers=usr/src/linux-headers-$release
if [ -z "$module" ]; then
    :
elif grep -qs "^VERSION_CODENAME=$suite$" /etc/os-release; then
    for tool in make gcc; do
        command -v $tool >/dev/null || skip "there is no $tool to build the kernel module with"
    done
    if [ ! -e "$kernel/$headers/Makefile" ]; then
        prepare_apt "$suite-backports"
        rm -rf "$kernel/new"
        common=${release%-amd64}
        common=${common%-cloud}
        for package in "headers-$release" "headers-$common-common" "kbuild-$common"; do
            unpack "linux-$package" "$kernel/new" || skip "there is no package linux-$package"
        done
        # The Makefile names its folder by its place after an installation, and types for BPF need a tool of their own.
        sed -i "s#^include /usr/src/#include $kernel/usr/src/#" "$kernel/new/$headers/Makefile"
        rm -f "$kernel/new/$headers/vmlinux"
        mv "$kernel/new/usr" "$kernel/usr"
        rm -rf "$kernel/new"
    fi
    build() { make -s -C "$kernel/$headers" M="$1" CC=gcc modules; }
else
    unshare -rm true 2>/dev/null || skip "there are no user namespaces to build the kernel module in"
    tools=$kernel/root
    if [ ! -e "$tools/$headers/Makefile" ]; then
        prepare_apt "$suite" "$suite-backports"
        rm -rf "$tools.new" "$apt"/cache/archives/*.deb
        mkdir -p "$tools.new"/{dev,proc,tmp,usr/bin,usr/lib,usr/lib64}
        ln -s usr/bin usr/lib usr/lib64 "$tools.new/"
        touch "$apt/nothing"
        apt-get install -qq -y --download-only --no-install-recommends "${with[@]}" -o "Dir::State::status=$apt/nothing" \
            "linux-headers-$release" make binutils >&2 || skip "the headers of Linux $release can't be fetched"
        for package in "$apt"/cache/archives/*.deb; do
            dpkg-deb -x "$package" "$tools.new"
        done
        rm -f "$apt"/cache/archives/*.deb
        cp "$(command -v busybox)" "$tools.new/usr/bin/busybox"
        for name in $(busybox --list); do
            [ -e "$tools.new/usr/bin/$name" ] || ln -s busybox "$tools.new/usr/bin/$name"
        done
        mv "$tools.new" "$tools"
    fi
    # shellcheck disable=SC2016 # another shell's
    build() {
        unshare -rm sh -c 'cd "$1" && mount --rbind /dev dev && mount --rbind /proc proc && mount --bind "$2" tmp &&
            exec chroot . /usr/bin/env -i PATH=/usr/bin make -s -C "/$3" M=/tmp modules' sh "$tools" "$1" "$headers"
    }
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{bin,boot,data,dev,etc,proc,root,run,sys,tmp,usr/bin}
cp "$(command -v busybox)" "$root/bin/busybox"
# libbpf reads the configuration of the kernel, where a program asks for it.
cp "$kernel/boot/config-$release" "$root/boot/"
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
for file in "${files[@]}"; do
    cp -L "$file" "$root/data/"
    ldd "$file" 2>/dev/null | grep -o '/[^ ]*' | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -nL "$library" "$root$library"
    done || true
done
if [ -n "$module" ]; then
    cp -r "$module" "$work/module"
    build "$work/module" >"$work/made" 2>&1 || { cat "$work/made" >&2; exit 1; }
    strip -g "$work"/module/*.ko
    cp "$work"/module/*.ko "$root/data/"
fi
cp "$1" "$root/data/script"
shift
{
    printf '%s\n' '#!/bin/busybox sh' '/bin/busybox --install -s /bin' \
        'mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp' \
        'mount -t cgroup2 none /sys/fs/cgroup; mount -t bpf bpf /sys/fs/bpf; mount -t tracefs t /sys/kernel/tracing' \
        'mkdir -p /dev/shm /dev/pts; mount -t devpts d /dev/pts; mount -t tmpfs run /run; mount -t tmpfs shm /dev/shm' \
        'export PATH=/bin:/usr/bin:/data HOME=/root TERM=dumb; cd /tmp; ip link set lo up 2>/dev/null' \
        'for lib in /data/*.so*; do [ -e "$lib" ] && ln -s "$lib" /lib/; done'
    printf 'set --'
    printf " '%s'" "$@"
    # A console of its own keeps what the kernel says apart from what the script says.
    printf '\n%s\n' 'echo "GUEST BEGIN $(uname -r)" >/dev/ttyS1; sh /data/script "$@" >/dev/ttyS1 2>&1 </dev/null; echo "GUEST EXIT $?" >/dev/ttyS1; sync; poweroff -f'
} >"$root/init"
chmod +x "$root/init"
(cd "$root" && find . | cpio -o -H newc --quiet) | gzip -1 >"$work/initrd"

machine=(-accel "tcg,thread=$THREADS" -cpu max)
arguments="console=ttyS0 loglevel=7 panic=-1 sysrq_always_enabled=1"
if [ -n "$shift" ]; then
    # A processor whose events are known. Its locked operations on 16 bytes are emulated wrongly in QEMU 7.2.
    machine=(-accel tcg,thread=single -icount "shift=$shift,sleep=off" -cpu Skylake-Server-v4,-cx16,-smap
        -rtc base=2026-01-01,clock=vm -seed 1)
    arguments+=" mitigations=off nokaslr norandmaps"
    # Without those operations newer kernels have no memory for BPF's timers and tasks, but in caches that they check.
    case $release in
        6.*) ;;
        *) arguments+=" slab_debug=F,kmalloc-*" ;;
    esac
fi

# An emulated CPU may run code that another one is changing, and then the kernel dies. Before the script has begun that is no
# news: the guest is booted again.
for attempt in 1 2 3; do
    status=0
    : >"$work/said"
    timeout --foreground "$seconds" qemu-system-x86_64 "${machine[@]}" -smp "$cpus$smp" -m "$memory" \
        -display none -nic none -no-reboot -serial "file:$work/console" -serial "file:$work/said" -monitor none \
        -kernel "$kernel/boot/vmlinuz-$release" -initrd "$work/initrd" \
        -append "$arguments" >"$work/qemu" 2>&1 &
    qemu=$!
    tail -n +1 -f --pid=$qemu "$work/said" | stdbuf -oL tr -d '\r' || true
    wait $qemu || status=$?
    cp "$work/console" "$cache/console.txt"
    if grep -q '^GUEST BEGIN' "$work/said"; then break; fi
    echo "the guest did not boot (attempt $attempt)" >&2
done
code=$(tr -d '\r' <"$work/said" | sed -n 's/^GUEST EXIT //p' | tail -n 1)
if [ -z "$code" ]; then
    echo "the guest did not come to its end (QEMU: $status)" >&2
    tail -n 30 "$work/console" >&2 || true
    cat "$work/qemu" >&2
    exit 1
fi
exit "$code"
