#!/usr/bin/env bash
# Records the pictures of docs/tour.md. That of Slurm is skipped where this user cannot start a Slurm cluster.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --quiet --release -p cosched
PATH=$PWD/target/release:$PATH ROOT=$PWD
export PATH ROOT COSCHED_HISTORY=off

# Records the script on standard input: picture NAME ROWS WHAT-IT-SHOWS
picture() {
    cargo xtask record --rows "$2" --title "$3" /dev/stdin "docs/img/$1.svg"
}

picture tour-run 8 "cosched run compresses eight files, and prints a summary" <<'END'
@ for n in 1 2 3 4 5 6 7 8; do head -c 4M /dev/urandom | base64 > part$n.txt; done; export COSCHED_CPUS=0-1
ls *.txt | cosched run gzip -k
ls *.gz | wc -l
END

picture recording 24 "A batch under cosched status, top, why and report" <<'END'
@ for n in 1 2 3 4 5 6; do head -c 16M /dev/urandom | base64 > data$n; done; export COSCHED_CPUS=0-1; set +m
@ (cosched run -q -p round-robin xz -kf1 {} ::: data* > /dev/null 2>&1 &); sleep 1
cosched status
cosched top
~ 3 jjjj
~ 1 w
~ 4 q
cosched why xz#3
@ while [ ! -e cosched-logs/*/run.json ]; do sleep 1; done
cosched report | head -9
END

picture tour-compare 18 "cosched compare finds which of two command lines is faster" <<'END'
@ head -c 8M /dev/urandom | base64 > data; export COSCHED_CPUS=0-1
cosched compare 'gzip -1 -kf data' 'gzip -9 -kf data'
END

picture tour-simulate 23 "A simulated machine runs a mix under two policies" <<'END'
@ cp "$ROOT"/mixes/perf-fair/mix05.toml .
cosched compare mix05.toml --on xeon-e5645 -p linux,even --metric turnaround_s,unfairness
END

if ! [ "$(id -u)" = 0 ] || ! command -v slurmctld slurmd munged > /dev/null; then
    echo "the picture of Slurm is skipped, because there is no Slurm, or this is not root"
    exit
fi
export COSCHED_CLUSTER=/tmp/cosched-tour
cluster=crates/cli/tests/suite/batch_jobs/cluster.sh
trap 'sh $cluster stop' EXIT
sh $cluster start 2
export SLURM_CONF=$COSCHED_CLUSTER/slurm.conf

picture tour-slurm 16 "cosched slurm runs a list of commands on two nodes" <<'END'
@ seq -f 'sleep 0.%g' 20 > commands.txt; unset COSCHED_CPUS
cosched slurm -N2 -t 5m -f commands.txt --wait
cosched report | head -9
END
