#!/bin/sh
# A Slurm cluster on this machine, in the folder $COSCHED_CLUSTER. For root, with Debian's slurm-wlm and munge.
#
#   cluster.sh start N     N nodes with two CPUs each, node1 to nodeN; then SLURM_CONF=$COSCHED_CLUSTER/slurm.conf
#   cluster.sh hold N      the same, until standard input ends; then stop
#   cluster.sh kill NODE   the node dies with all of its processes
#   cluster.sh stop        everything ends, and the folder is removed
#
# A node is a process namespace with a host name of its own: the death of its first process is the death of all.
# Several clusters have several folders: each has its own ports, key and socket, and none uses a cgroup.
set -eu
dir=${COSCHED_CLUSTER:?name a folder for the cluster}
export SLURM_CONF="$dir/slurm.conf"

# One of 90 ranges of ports, by the name of the folder.
base=$((20000 + $(printf %s "$dir" | cksum | cut -d ' ' -f 1) % 90 * 100))

configure() {
    ports=$((base + 1))
    [ "$1" -eq 1 ] || ports=$ports-$((base + $1))
    cat > "$SLURM_CONF" <<END
ClusterName=cosched
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort=$base
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge.socket
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
JobAcctGatherType=jobacct_gather/linux
AccountingStorageType=accounting_storage/none
ReturnToService=2
SlurmdTimeout=5
KillWait=5
SchedulerParameters=sched_interval=1,bf_interval=1
NodeName=node[1-$1] NodeHostname=localhost NodeAddr=127.0.0.1 Port=$ports CPUs=2 CoresPerSocket=2 RealMemory=2000
PartitionName=main Nodes=node[1-$1] Default=YES MaxTime=60
END
    echo "127.0.0.1 localhost $(hostname) $(seq -f node%g -s ' ' "$1")" > "$dir/hosts"
}

# Starts a program that stays in the foreground, as NAME.
daemon() {
    name=$1
    shift
    "$@" > "$dir/$name.out" 2>&1 < /dev/null &
    echo $! > "$dir/pids/$name"
}

node() {
    mkdir -p "$dir/spool-$1"
    daemon "$1" unshare --uts --mount --pid --fork --kill-child --mount-proc --propagation private sh -c \
        "mount --bind '$dir/hosts' /etc/hosts; hostname $1; slurmd -D -N $1; exit"
}

end() {
    kill -9 "$(cat "$1")" 2> /dev/null || true
    rm "$1"
}

start() {
    mkdir -p "$dir/pids" "$dir/state"
    configure "$1"
    head -c 1024 /dev/urandom > "$dir/munge.key"
    chmod 600 "$dir/munge.key"
    daemon munged munged --foreground --force --key-file="$dir/munge.key" --socket="$dir/munge.socket" \
        --pid-file="$dir/munged.pid" --log-file="$dir/munged.log" --seed-file="$dir/munge.seed"
    daemon slurmctld slurmctld -D -f "$SLURM_CONF"
    for name in $(seq -f node%g "$1"); do node "$name"; done
    tries=60
    until [ "$(sinfo -h -N -t idle 2> /dev/null | wc -l)" -eq "$1" ]; do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || { tail "$dir"/*.out "$dir"/*.log >&2; stop; exit 1; }
        sleep 0.5
    done
}

stop() {
    for pid in "$dir"/pids/*; do
        [ ! -e "$pid" ] || end "$pid"
    done
    rm -rf "$dir"
}

case $1 in
    start) start "$2" ;;
    hold)
        trap stop EXIT
        trap 'exit 1' INT TERM HUP
        start "$2"
        echo ready
        cat > /dev/null
        ;;
    kill) end "$dir/pids/$2" ;;
    stop) stop ;;
esac
