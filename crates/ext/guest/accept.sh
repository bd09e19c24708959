# What must hold of the scheduler in the kernel, tried in a guest as root: see guest/boot.sh. Runs under busybox.
#
#   accept.sh [KILLS]    KILLS: how often a run is killed at a random moment; default 10
kills=${1:-10}
failed=0
export COSCHED_CPUS=all
state() { cat /sys/kernel/sched_ext/state; }

# Processes of jobs that are stopped, or are bound to fewer CPUs than there are.
harmed() {
    for pid in $(pidof sh sleep busybox); do
        stat=$(cat /proc/$pid/stat 2>/dev/null) || continue
        grep -qz ^COSCHED_JOB= /proc/$pid/environ 2>/dev/null || continue
        rest=${stat##*) }
        [ "${rest%% *}" = T ] && echo "$pid is stopped"
        mask=$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/$pid/status 2>/dev/null)
        [ -z "$mask" ] || [ "$mask" = "0-$(($(nproc) - 1))" ] || echo "$pid is bound to $mask"
    done
    cat /sys/fs/cgroup/cosched-*/cgroup.freeze /sys/fs/cgroup/cosched-*/*/cgroup.freeze 2>/dev/null | grep -q 1 && echo "a group is frozen"
}

jobs_left() {
    grep -lz ^COSCHED_JOB= /proc/[0-9]*/environ 2>/dev/null | wc -l
}

# Waits for at most so many seconds until a command succeeds.
within() {
    limit=$1
    shift
    until "$@"; do
        limit=$((limit - 1))
        [ $limit -gt 0 ] || return 1
        sleep 1
    done
}
is_off() { [ "$(state)" = disabled ]; }
all_of() { [ "$(jobs_left)" -ge $1 ]; }
is_on() { [ "$(state)" = enabled ]; }
none_left() { [ "$(jobs_left)" = 0 ]; }

check() {
    name=$1
    shift
    if "$@" >/tmp/$name.log 2>&1; then
        echo "ok      $name"
        case $name in killed | beside | efs | turns | weights | pinned | measured | writes | beset) tail -n 1 /tmp/$name.log ;; esac
    else
        echo "FAILED  $name"
        tail -n 20 /tmp/$name.log
        failed=$((failed + 1))
    fi
}

spin='i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done'

# Every policy that needs no counters completes a batch, all of it by plans.
policies() {
    for policy in linux fifo round-robin bandwidth fair perf-fair even; do
        echo "== $policy"
        cosched run -q --actuator sched-ext --policy $policy --param quantum_s=0.1 --record $policy.json --no-logs "$spin; echo {}" ::: 1 2 3 4 5 6 7 8 >out 2>err ||
            cosched run -q --actuator sched-ext --policy $policy --record $policy.json --no-logs "$spin; echo {}" ::: 1 2 3 4 5 6 7 8 >out 2>err || return 1
        cat err
        [ "$(sort -n out | tr '\n' ' ')" = "1 2 3 4 5 6 7 8 " ] || return 1
        tr -d ' \n' <$policy.json | grep -o '"plans":{[^}]*}'
        tr -d ' \n' <$policy.json | grep -q '"given_up[a-z_]*":[0-9]' && return 1
        is_off || return 1
    done
    return 0
}

# A job's own time on CPUs, as the scheduler saw it, is that of the kernel's accounts.
whole() {
    cosched run -q --actuator sched-ext --policy round-robin --record whole.json --logs whole "$spin; : {}" ::: 1 2 3 4 5 6 || return 1
    is_off
}

# Threads of a job that nobody else needs CPUs for have all of them.
wide() {
    long="$spin; $spin; $spin; $spin; $spin; $spin"
    cosched run -q --actuator sched-ext --policy round-robin --record wide.json --logs wide "($long) & ($long) & ($long) & ($long) & wait; : {}" ::: 1 || return 1
    sed -n 's/^ *"\(start_s\|end_s\|cpu_s\)": \([0-9.]*\),*$/\1 \2/p' wide.json
    sed -n 's/^ *"\(start_s\|end_s\|cpu_s\)": \([0-9.]*\),*$/\1 \2/p' wide.json |
        awk '!($1 in of) { of[$1] = $2 } END { exit !(of["cpu_s"] > 1.5 * (of["end_s"] - of["start_s"])) }' || return 1
    is_off
}

# What was counted of the CPU clock is the CPU time of each job, of so many in a record.
clock_counts() {
    sed -n 's/^ *"\(cpu_s\|cycles\)": \([0-9.]*\),*$/\1 \2/p' $1 >pairs
    cat pairs
    awk -v jobs=$2 '$1 == "cpu_s" { time = $2 } $1 == "cycles" { n++; share = $2 / 1e9 / time; if (share < 0.9 || share > 1.1) bad = 1 } END { exit !(n == jobs && !bad) }' pairs
}

# SysRq-S removes the scheduler. The run goes on with the freezer, and says so; and what was counted in the kernel goes on being counted.
ejection() {
    cosched run --actuator sched-ext --policy round-robin --event cycles=software/event=0/ --record ejected.json --logs ejected "$spin; $spin; : {}" ::: 1 2 3 4 5 6 7 8 >out 2>err &
    run=$!
    within 20 is_on || return 1
    sleep 1
    echo S >/proc/sysrq-trigger
    wait $run || return 1
    cat err out
    grep -q "disabled by sysrq-S" err || return 1
    grep -q "8 succeeded" err || return 1
    clock_counts ejected.json 8 || return 1
    is_off
}

# A second one is refused, and the first goes on.
second() {
    cosched run --actuator sched-ext --policy round-robin --logs first "$spin; $spin; : {}" ::: 1 2 3 4 5 6 >out 2>err &
    run=$!
    within 20 is_on || return 1
    cosched run --actuator sched-ext --no-logs true ::: 1 >out2 2>&1
    code=$?
    cat out2
    wait $run || return 1
    [ $code = 3 ] && grep -q "another scheduler is loaded: cosched_plan" out2
}

# Jobs that are told to end do, whether they have a CPU or wait.
interrupt() {
    cosched run --actuator sched-ext --policy fifo --jobs 8 --logs interrupted "while :; do :; done; : {}" ::: 1 2 3 4 5 6 7 8 >out 2>err &
    run=$!
    within 20 is_on || return 1
    sleep 2
    kill -TERM $run
    wait $run
    code=$?
    cat out err
    [ $code = 143 ] && none_left && is_off
}

# Suspended, all stands still; continued, all goes on.
suspend() {
    cosched run --actuator sched-ext --policy round-robin --logs suspended "$spin; $spin; $spin; : {}" ::: 1 2 3 4 5 6 >out 2>err &
    run=$!
    within 20 is_on || return 1
    sleep 2
    kill -TSTP $run
    sleep 3
    before=$(cat /sys/fs/cgroup/cosched-*/cpu.stat | sed -n 's/^usage_usec //p')
    sleep 3
    after=$(cat /sys/fs/cgroup/cosched-*/cpu.stat | sed -n 's/^usage_usec //p')
    kill -CONT $run
    wait $run || return 1
    echo "$before $after"
    grep -q "6 succeeded" err && [ $((after - before)) -lt 50000 ] && is_off
}

# A process with a policy of real time keeps it, and one that leaves the scheduler is told of.
real_time() {
    cosched run --actuator sched-ext --policy round-robin --logs real "chrt -f 1 sh -c 'chrt -p \$\$; $spin'; chrt -o 0 sh -c '$spin'; : {}" ::: 1 2 >out 2>err || return 1
    cat err real/*.out
    grep -q SCHED_FIFO real/*.out && grep -q "chosen a scheduling policy" err && is_off
}

# With sched-ext-all every ordinary process belongs to it, and the batch and the others share the CPUs.
all() {
    (while :; do :; done) & one=$!
    (while :; do :; done) & two=$!
    cosched run --actuator sched-ext-all --policy round-robin --logs all "$spin; : {}" ::: 1 2 3 4 5 6 >out 2>err
    code=$?
    kill $one $two
    cat out err
    [ $code = 0 ] && grep -q "6 succeeded" err && is_off
}

# The same where both are bound to one CPU: the batch has its turns there, under either scheduler.
all_bound() {
    taskset 1 sh -c 'while :; do :; done' & one=$!
    taskset 1 sh -c 'while :; do :; done' & two=$!
    for policy in "round-robin --param quantum_s=0.1" "efs --param demand=given"; do
        timeout -s KILL 120 cosched run -q --actuator sched-ext-all --cpus 0 --policy $policy --logs bound "$spin; : {}" ::: 1 2 >out 2>err
        code=$?
        cat out err
        [ $code = 0 ] && [ ! -s err ] || break
    done
    kill $one $two
    [ $code = 0 ] && [ ! -s err ] && is_off
}

# Where ordinary processes leave no CPU, the run goes on with the freezer, before the kernel's watchdog finds a fault.
crowded() {
    hogs=
    for cpu in $(seq 1 $((2 * $(nproc)))); do
        (while :; do :; done) &
        hogs="$hogs $!"
    done
    cosched run --actuator sched-ext --policy round-robin --logs crowded "$spin; : {}" ::: 1 2 3 4 >out 2>err
    code=$?
    kill $hogs
    cat out err
    [ $code = 0 ] && grep -q "4 succeeded" err && is_off || return 1
    # Newer kernels keep a part of each CPU for loaded schedulers.
    grep -q "have left a job no CPU for 20 s" err || echo "the batch got CPUs all the same"
}

# Also processes that a job was in the middle of making when it was given to the scheduler come to it.
pipes() {
    spins='(while [ ! -e /tmp/go ]; do :; done)'
    round=0
    while [ $round -lt 6 ]; do
        round=$((round + 1))
        rm -f go
        cosched run -q --actuator sched-ext --policy round-robin --param quantum_s=0.1 --jobs 8 --no-logs "$spins | $spins | $spins; : {}" ::: 1 2 3 4 5 6 7 8 >out 2>err &
        run=$!
        within 20 is_on || return 1
        within 60 all_of 32 || { touch go; return 1; }
        sleep 3
        policies_of_jobs >policies
        touch go
        wait $run || return 1
        echo $(sort policies | uniq -c)
        [ "$(sort -u policies)" = 7 ] || return 1
    done
    is_off
}

# The policy of each process of a job.
policies_of_jobs() {
    for pid in $(pidof sh); do
        grep -qz ^COSCHED_JOB= /proc/$pid/environ 2>/dev/null || continue
        stat=$(cat /proc/$pid/stat 2>/dev/null) || continue
        echo ${stat##*) } | cut -d' ' -f39
    done
}

# A run that hangs keeps nobody from running: its guardian gives the jobs back to the ordinary scheduler. When it is back it goes on
# with the freezer.
hangs() {
    rm -f go
    cosched run --actuator sched-ext --policy round-robin --jobs 8 --logs hangs "while [ ! -e /tmp/go ]; do :; done; : {}" ::: 1 2 3 4 5 6 7 8 >out 2>err &
    run=$!
    within 20 is_on || return 1
    within 30 all_of 8 || { touch go; return 1; }
    kill -STOP $run
    sleep 14
    policies_of_jobs >policies
    kill -CONT $run
    sleep 3
    touch go
    wait $run
    code=$?
    cat policies err out
    [ $code = 0 ] && grep -q "8 succeeded" err && grep -q "given back to the ordinary scheduler" err || return 1
    [ "$(sort -u policies)" = 0 ] && is_off
}

# Batches beside programs that switch, fork and send messages all the time, all of them under the same scheduler: it is never
# given up, and nobody waits too long. BESIDE_S: for how long, in seconds.
beside() {
    for tool in stress-ng hackbench; do
        command -v $tool >/dev/null || { echo "skipped, because there is no $tool"; return 0; }
    done
    for_s=${BESIDE_S:-60}
    end=$(($(date +%s) + for_s)) batches=0
    stress-ng --quiet --cpu 2 --switch 2 --fork 1 --pipe 1 --timer 1 --timeout ${for_s}s &
    stress=$!
    (while [ $(date +%s) -lt $end ]; do hackbench -g 2 -l 100 >/dev/null || exit 1; done) &
    hack=$!
    while [ $(date +%s) -lt $end ]; do
        # In turns the one that carries out plans and EFS.
        policy="--policy round-robin --param quantum_s=0.1"
        [ $((batches % 2)) = 0 ] || policy="--policy efs --param demand=given"
        cosched run -q --actuator sched-ext-all $policy --record beside.json --no-logs "$spin; : {}" ::: 1 2 3 4 5 6 || return 1
        tr -d ' \n' <beside.json | grep -q '"given_up[a-z_]*":[0-9]' && { grep -A3 '"warnings"' beside.json; return 1; }
        batches=$((batches + 1))
    done
    wait $hack || return 1
    wait $stress || return 1
    echo "$batches batches in $for_s s"
    is_off
}

# What a batch of four had of the CPUs under EFS in the kernel, each of which uses so much of the memory bus.
of_four() {
    use="$1 of the bus each"
    cat >four.toml <<MIX
[[job]]
name = "hog"
command = '$spin; $spin'
bus_use = $1
copies = 4
MIX
    shift
    had_of_four --param demand=given "$@"
}

# The same, where the kernel measures what each job uses. The clock of the CPU stands for lines of memory: a job with a CPU has 1,000 of
# them in a microsecond, on however slow a host.
of_clock() {
    use="$1 of the bus each, as measured"
    cat >four.toml <<MIX
[[job]]
name = "hog"
command = 'while :; do :; done'
copies = 4
MIX
    rm -f four.json
    had_of_four --timeout 8s --param mu_trans_per_us=$(awk "BEGIN { print 1000 / $1 }") --event mm=software/event=0/ --events four.events
}

# Whether the demands that were measured last are those of four jobs, of classes from one to another. A class has odds b / (1 - b) of
# 2 ^ ((class - 1) / 64 - 42).
classes_are() {
    tr -d ' \n' <four.events | grep -oE '"admits":\[(\{[^}]*\},?){4}\]' | tail -n 1 | grep -o '"class":[0-9]*' | cut -d: -f2 >classes
    echo "classes of demands: $(tr '\n' ' ' <classes)"
    awk -v least=$1 -v most=$2 '$1 < least || $1 > most { bad = 1 } END { exit !(NR == 4 && !bad) }' classes
}

had_of_four() {
    cosched run -q four.toml --actuator sched-ext --policy efs --param quantum_s=1 --record four.json --logs four "$@"
    # Jobs that time out have not succeeded.
    [ $? = 0 ] || [ "$1" = --timeout ] || return 1
    tr -d ' \n' <four.json | grep -o '"plans":{[^}]*}'
    tr -d ' \n' <four.json | sed 's/.*"at_once_s":\[\([^]]*\)\].*"longest_wait_s":\([0-9.]*\).*/\1 \2/' |
        awk -v name="$use" -F'[, ]' '{
            for (i = 2; i < NF; i++) all += $i
            for (i = 4; i < NF; i++) several += $i
            printf "%s: one at a time for %.1f %%, three or four for %.1f %%, longest wait %.0f ms\n",
                name, 100 * $2 / all, 100 * several / all, 1000 * $NF
        }'
    is_off
}

# EFS in the kernel: who fills the bus runs alone and takes turns; who uses little of it runs beside others.
efs() {
    of_four 1 >full || { cat full; return 1; }
    of_four 0.2 >light || { cat full light; return 1; }
    cat full light
    # Emulated CPUs wait for each other: in so long an overlap nothing is executed twice.
    sed -n 's/.*one at a time for \([0-9]*\).*longest wait \([0-9]*\).*/\1 \2/p' full | awk '{ exit !($1 >= 90 && $2 <= 1000) }' || return 1
    sed -n 's/.*three or four for \([0-9]*\).*/\1/p' light | awk '{ exit !($1 >= 50) }' || return 1
    echo "$(tail -n 1 full); $(tail -n 1 light)"
}

# Jobs that fill the bus have equal shares of it, and so have those of which two fit; beside those that use little a job that fills
# it has less.
turns() {
    line=
    for uses in "1 1 1 1" "0.5 0.5 0.5 0.5" "0.5 0.5 0.5"; do
        shares $uses || return 1
        awk '{ if ($2 < 0.7 / jobs || $2 > 1.4 / jobs) bad = 1 } END { exit !(NR == jobs && !bad) }' jobs=$(echo $uses | wc -w) had || return 1
        line="$line$(awk '{ printf "%.0f ", 100 * $2 }' had)% at $uses; "
    done
    shares 1 0.2 0.2 0.2 || return 1
    awk '/-1 / { most = $2 } !/-1 / { if (!least || $2 < least) least = $2 } END { exit !(NR == 4 && most < least) }' had || return 1
    echo "shares: $line$(awk '{ printf "%.0f ", 100 * $2 }' had)% at 1 0.2 0.2 0.2"
}

# What jobs that use so much of the bus each had of the CPU time of all of them in 16 s.
shares() {
    number=0
    for use in "$@"; do
        number=$((number + 1))
        printf '[[job]]\nname = "job-%s-%s"\ncommand = "while :; do :; done"\nbus_use = %s\n' $number $use $use
    done >mixed.toml
    had_of_mixed
}

had_of_mixed() {
    rm -f mixed.json had
    cosched run -q mixed.toml --actuator sched-ext --policy efs --param demand=given --param quantum_s=1 --timeout 16s --record mixed.json --logs mixed "$@"
    tr -d ' \n' <mixed.json | grep -q '"given_up[a-z_]*":[0-9]' && return 1
    sed -n 's/^ *"\(name\|cpu_s\)": "*\([a-z0-9.-]*\)"*,*$/\1 \2/p' mixed.json |
        awk '$1 == "name" { name = $2 } $1 == "cpu_s" && name { of[name] = $2; all += $2; name = "" } END { for (n in of) print n, of[n] / all }' | sort >had
    cat had
    is_off
}

# Weights count where jobs share CPUs, whichever CPU they stand on: without the rules for those that starve, which give also the
# lightest a turn in five periods.
weights() {
    command -v nice >/dev/null || { echo "skipped, because there is no nice"; return 0; }
    for job in a b c; do
        nice=0
        [ $job != c ] || nice=19
        printf '[[job]]\nname = "%s"\ncommand = "exec nice -n %s sh -c \\"while :; do :; done\\""\nbus_use = 0.1\n' $job $nice
    done >mixed.toml
    had_of_mixed --cpus 0-1 --param c_global=1000 --param c_local=1000 || return 1
    awk '$1 == "c" { share = $2 } END { exit !(NR == 3 && share < 0.1) }' had || return 1
    echo "shares: $(awk '{ printf "%.0f ", 100 * $2 }' had)%, the last with nice 19"
}

# A job that is bound to a CPU which an ordinary process keeps waits; nobody else waits for it, though all of them fill the bus.
pinned() {
    last=$(($(nproc) - 1))
    for job in a b c d; do
        bind=
        [ $job != d ] || bind="taskset $((1 << last)) "
        printf '[[job]]\nname = "%s"\ncommand = "exec %ssh -c \\"while :; do :; done\\""\nbus_use = 1\n' $job "$bind"
    done >mixed.toml
    # It leaves the CPU before the run would be given up for that one's sake.
    timeout 12 taskset $((1 << last)) sh -c 'while :; do :; done' &
    had_of_mixed || return 1
    tr -d ' \n' <mixed.json | sed 's/.*"at_once_s":\[\([^]]*\)\].*/\1/' | awk -F, '{ all = $1 + $2 + $3 + $4 + $5; printf "%.1f\n", 100 * $1 / all; exit !($1 < 0.1 * all) }' >idle || { cat idle; return 1; }
    echo "shares: $(awk '{ printf "%.0f ", 100 * $2 }' had)%, the last bound; nobody had a CPU for $(cat idle) %"
}

# Demands that the kernel measures: who is seen to fill the bus runs alone, who is seen to use little of it beside others. And what
# it counts for a job while the CPU is that job's is what the job's own clock says.
measured() {
    # From 0.95, and from 0.09 to 0.12.
    of_clock 1 >full && classes_are 2961 3329 >>full || { cat full; return 1; }
    of_clock 0.1 >light && classes_are 2475 2505 >>light || { cat full light; return 1; }
    cat full light
    sed -n 's/.*one at a time for \([0-9]*\).*/\1/p' full | awk '{ exit !($1 >= 75) }' || return 1
    sed -n 's/.*three or four for \([0-9]*\).*/\1/p' light | awk '{ exit !($1 >= 50) }' || return 1
    # The CPU clock, counted in the kernel, is the time on CPUs: of jobs that start processes all the time too.
    cat >forks.toml <<'MIX'
[[job]]
name = "forks"
command = 'i=0; while [ $i -lt 400 ]; do (:); i=$((i+1)); done'
copies = 4
MIX
    cosched run -q forks.toml --actuator sched-ext --policy round-robin --param quantum_s=0.5 --event cycles=software/event=0/ --record clock.json --logs clock || return 1
    clock_counts clock.json 4 || return 1
    echo "$(sed -n 2p full); $(sed -n 2p light)"
}

# A memory controller that reads so many lines, and writes so many, in a microsecond: a clock stands for it as well.
controller() {
    pmus=/sys/bus/event_source/devices
    mkdir -p pmus/uncore_imc/events pmus/uncore_imc/format
    for pmu in $pmus/*; do
        ln -s $(readlink -f $pmu) pmus/${pmu##*/}
    done
    cd pmus/uncore_imc
    echo 1 >type
    echo 0 >cpumask
    echo config:0-7 >format/event
    for event in read:$1 write:$2; do
        file=events/cas_count_${event%:*}
        echo event=0 >$file
        # A count is 1,000 lines in a microsecond, and a line 64 bytes.
        awk "BEGIN { printf \"%.12f\", ${event#*:} / 1000 * 64 / 1048576 }" >$file.scale
        echo MiB >$file.unit
    done
    cd /tmp
    mount -o bind pmus $pmus
}

# By their reads alone four jobs use little of the bus, and run at once. With twelve lines written for each that is read, one fills it.
writes() {
    # From 0.14 to 0.2, and from 0.95.
    of_clock 0.15 >reads && classes_are 2515 2560 >>reads || { cat reads; return 1; }
    controller 1000 12000
    of_clock 0.15 >full && classes_are 2961 3329 >>full
    code=$?
    umount /sys/bus/event_source/devices
    cat reads full
    [ $code = 0 ] || return 1
    sed -n 's/.*three or four for \([0-9]*\).*/\1/p' reads | awk '{ exit !($1 >= 50) }' || return 1
    # Before the first reading of the traffic they run at once.
    sed -n 's/.*one at a time for \([0-9]*\).*/\1/p' full | awk '{ exit !($1 >= 60) }' || return 1
    echo "$(sed -n 2p reads); with writes $(sed -n 2p full)"
}

# EFS on a part of the machine, and beside an ordinary process that keeps one of its CPUs: who is called to that one is called to
# another.
beset() {
    last=$(($(nproc) - 1))
    of_four 1 --cpus 0-$((last - 1)) || return 1
    taskset $((1 << last)) sh -c 'while :; do :; done' & hog=$!
    of_four 1
    code=$?
    kill $hog
    [ $code = 0 ] || return 1
    tr -d ' \n' <four.json | grep -q '"given_up[a-z_]*":[0-9]' && return 1
    tr -d ' \n' <four.json | sed 's/.*"longest_wait_s":\([0-9.]*\).*/\1/' | awk '{ exit !($1 <= 1.5) }'
}

# Killed at a random moment: the scheduler is gone, every job ends, nothing is stopped or bound.
killed() {
    n=0 on=0
    while [ $n -lt $kills ]; do
        n=$((n + 1))
        # In turns the one that carries out plans and EFS.
        policy="--policy round-robin --param quantum_s=0.05"
        [ $((n % 2)) = 1 ] || policy="--policy efs --param demand=given"
        cosched run -q --actuator sched-ext $policy --jobs 6 --no-logs "$spin; : {}" ::: 1 2 3 4 5 6 >/dev/null 2>&1 &
        run=$!
        within 30 is_on && on=$((on + 1))
        usleep $((($(od -An -N2 -tu2 /dev/urandom) % 3000) * 1000))
        kill -9 $run 2>/dev/null
        wait $run 2>/dev/null
        within 10 is_off || { echo "round $n: the scheduler is $(state)"; return 1; }
        usleep 300000
        harm=$(harmed)
        [ -z "$harm" ] || { echo "round $n: $harm"; return 1; }
        within 60 none_left || { echo "round $n: $(jobs_left) processes have not ended"; return 1; }
    done
    rm -rf /tmp/cosched-*
    echo "$on of $kills were killed while the scheduler was there"
    [ $((2 * on)) -ge $kills ]
}

cd /tmp
for name in ${CHECKS:-policies whole wide ejection second interrupt suspend real_time all all_bound efs turns weights pinned measured writes beset pipes hangs crowded beside killed}; do
    check $name $name
done
# SysRq-S says its own, and is meant.
if dmesg | grep -E "BUG:|Oops|WARNING:|runnable task stall|soft lockup|rcu.*stall" | grep -v "clocksource"; then
    echo "FAILED  the kernel's log"
    failed=$((failed + 1))
fi
echo "$failed failed"
[ $failed = 0 ]
