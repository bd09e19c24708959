# /// script
# dependencies = ["cosched"]
# ///
"""A world of one socket: six cores of two threads, a shared last-level cache, and one or two memory channels.

    cosched run examples/worlds/mixes/socket-1.toml --on "cmd:python3 examples/worlds/socket.py --channels 2"

A job has `given = { program = "lattice", instructions = 4e10 }`. PROGRAMS below has the programs. README.md explains each law.
With COSCHED_WORLD_TRUTH=FILE the world appends a line of JSON to FILE for each job that ends.
"""

import argparse
import bisect
import functools
import math
from typing import NamedTuple

from timeline import Flow, Physics, Timeline

# Cores, caches and clocks of an Intel Core i7-8700. Turbo: GamersNexus 2017, "Explaining How Coffee Lake Turbo Works".
CORES, THREADS = 6, 2
GHZ = [4.6, 4.6, 4.5, 4.4, 4.3, 4.3, 4.3]  # by the number of active cores
L1_KIB, L2_KIB, LLC_LINES = 32, 256, 12 * 2**20 // 64
# Load-to-use times: Intel optimization manual (L2, LLC); 7-cpu.com, Skylake (memory: LLC + 51 ns).
L2_CYCLES, LLC_NS, MEMORY_NS = 12, 10.0, 51.0
SUPERQUEUE = 16  # lines that one core can wait for at once: Intel optimization manual, L2 to LLC
PARTITIONED = 0.8  # part of the overlap of misses that half a reorder buffer keeps; Raasch and Reinhardt 2003 find mild losses
# DDR4-2666, one rank: JEDEC JESD79-4. A burst of 8 takes 3 ns; four activations take at least tFAW = 21 ns.
BURST_NS, ROW_MISS_NS = 3.0, 21.0 / 4
WRITE_BATCH, TURN_NS = 16, 12.5  # writes drained at once, as in Stuecheli et al. 2010; tWTR_L and the way back to reads
REFRESH_NS, REFRESH_EACH_NS = 350.0, 7800.0  # tRFC of 8 Gbit, tREFI
# Power: activity counts times energies, as in Bellosa 2000; 65 W with all cores at work. DRAM: 20 pJ a bit, as in Malladi 2012.
UNCORE_W, CORE_W, INSTRUCTION_NJ, LLC_NJ, MEMORY_NJ = 8.0, 4.0, 0.55, 1.5, 10.0


class Phase(NamedTuple):
    """A stationary part of a program. Accesses and misses are for a thousand instructions."""

    seconds: float  # its length alone
    cpi: float  # cycles for an instruction if each access hit the L1 cache
    width: float  # part of the dispatch slots that it fills while it does not wait
    l1: float
    l2: float
    llc: float
    floor: float  # miss ratio in an endless last-level cache
    knee_mb: float  # cache at which half of the avoidable misses are avoided
    bend: float  # exponent of the curve: 1 is gradual, 4 a cliff
    mlp: float  # misses that overlap, with prefetches
    dirty: float  # lines written back for each line read
    rows: float  # part of the accesses that hit an open row
    l1_kib: float
    l2_kib: float  # footprints in the private caches


# Magnitudes as published for SPEC CPU2006: Jaleel 2007 (misses by cache size), Henning 2006 and Phansalkar et al. 2007 (IPC).
PROGRAMS = {name: [Phase(*row) for row in rows] for name, rows in {
    # compute bound
    "chess": [(10, 0.62, 0.72, 310, 9, 0.8, 0.15, 1.0, 2.0, 2.0, 0.3, 0.4, 24, 180)],
    "molecule": [(10, 0.42, 0.85, 380, 9, 0.4, 0.10, 0.5, 2.0, 3.0, 0.2, 0.6, 24, 140)],
    "render": [(10, 0.46, 0.80, 400, 14, 0.1, 0.10, 0.5, 2.0, 2.0, 0.2, 0.5, 30, 120)],
    "encode": [(4, 0.38, 0.88, 420, 10, 1.5, 0.25, 2.0, 1.5, 3.0, 0.3, 0.8, 22, 160),
               (3, 0.41, 0.86, 410, 11, 1.9, 0.25, 2.0, 1.5, 3.0, 0.3, 0.8, 22, 170)],
    "tensor": [(8, 0.33, 0.95, 450, 22, 2.0, 0.10, 1.5, 2.0, 5.0, 0.3, 0.8, 32, 240),
               (4, 0.50, 0.70, 400, 26, 6.0, 0.60, 2.0, 1.0, 6.0, 0.5, 0.8, 28, 240)],
    # sensitive to their share of the cache
    "events": [(10, 0.70, 0.60, 360, 35, 22, 0.05, 5.0, 1.6, 1.8, 0.35, 0.3, 40, 600)],
    "xmltree": [(3, 0.60, 0.65, 330, 22, 6, 0.10, 1.5, 2.0, 2.0, 0.3, 0.5, 36, 300),
                (7, 0.60, 0.65, 330, 42, 18, 0.04, 2.4, 2.2, 2.0, 0.3, 0.4, 44, 500)],
    "simplex": [(5, 0.60, 0.60, 340, 40, 26, 0.25, 6.0, 1.2, 3.5, 0.25, 0.6, 48, 900),
                (3, 0.55, 0.65, 340, 24, 12, 0.15, 3.0, 1.5, 3.0, 0.25, 0.6, 36, 500)],
    "speech": [(12, 0.50, 0.75, 330, 20, 14, 0.08, 7.0, 4.0, 4.0, 0.1, 0.7, 30, 400)],
    # streams
    "lattice": [(10, 0.55, 0.55, 300, 36, 32, 0.95, 6.0, 1.0, 8.0, 0.45, 0.75, 64, 2000)],
    "gates": [(10, 0.45, 0.60, 200, 29, 28, 0.96, 8.0, 1.0, 10.0, 0.3, 0.95, 64, 2000)],
    "waves": [(4, 0.50, 0.60, 380, 30, 24, 0.70, 5.0, 1.0, 7.0, 0.35, 0.8, 56, 1500),
              (2, 0.48, 0.70, 390, 18, 8, 0.50, 3.0, 1.2, 6.0, 0.35, 0.8, 40, 600),
              (4, 0.52, 0.60, 380, 31, 26, 0.72, 5.0, 1.0, 7.0, 0.40, 0.8, 56, 1500)],
    "fields": [(6, 0.55, 0.55, 350, 26, 22, 0.85, 6.0, 1.0, 5.0, 0.4, 0.6, 60, 1500),
               (3, 0.50, 0.65, 350, 15, 9, 0.60, 4.0, 1.0, 5.0, 0.4, 0.6, 48, 800)],
    # pointer chasing
    "network": [(6, 0.75, 0.50, 380, 60, 42, 0.15, 14.0, 1.0, 3.2, 0.25, 0.15, 56, 1800),
                (3, 0.65, 0.55, 370, 40, 22, 0.10, 8.0, 1.2, 2.6, 0.25, 0.2, 48, 1000)],
    "paths": [(5, 0.65, 0.60, 350, 24, 10, 0.10, 3.0, 1.5, 1.5, 0.3, 0.2, 36, 500),
              (4, 0.60, 0.65, 350, 14, 4, 0.10, 2.0, 1.5, 1.5, 0.3, 0.3, 30, 300)],
    # mixed
    "build": [(3, 0.62, 0.68, 370, 22, 5, 0.20, 2.0, 1.5, 2.2, 0.4, 0.5, 44, 400),
              (2, 0.60, 0.60, 380, 34, 20, 0.55, 4.0, 1.2, 4.0, 0.5, 0.6, 48, 900),
              (4, 0.65, 0.68, 360, 18, 3, 0.15, 1.5, 1.5, 2.0, 0.4, 0.5, 40, 350)],
    "compress": [(5, 0.58, 0.68, 330, 20, 8, 0.12, 4.0, 1.5, 2.4, 0.3, 0.4, 32, 500),
                 (3, 0.50, 0.75, 340, 12, 3, 0.10, 2.0, 1.5, 2.4, 0.4, 0.5, 28, 300)],
}.items()}


@functools.cache
def window_of(phase):
    """The accesses (their logarithms) in which a program touches so many lines: each new line takes 1 / miss(c) accesses."""
    lines = [8 * 1.06**step for step in range(200) if 8 * 1.06**step < 2 * LLC_LINES]
    accesses, spent = [], lines[0]
    for low, high in zip(lines, lines[1:] + [lines[-1]]):
        accesses.append(math.log(spent))
        spent += (high - low) / miss_ratio(phase, (low + high) / 2)
    return accesses, lines


def miss_ratio(phase, lines):
    """The part of the accesses that miss with this much of an LRU cache."""
    return phase.floor + (1 - phase.floor) / (1 + (lines / (phase.knee_mb * 16384)) ** phase.bend)


def occupancy(phase, accesses):
    """The lines that a program touches in so many accesses."""
    logs, lines = window_of(phase)
    at = math.log(max(accesses, 1e-9))
    place = bisect.bisect(logs, at)
    if place == 0:
        return lines[0] * math.exp(at - logs[0])
    if place == len(logs):
        return lines[-1]
    part = (at - logs[place - 1]) / (logs[place] - logs[place - 1])
    return lines[place - 1] + part * (lines[place] - lines[place - 1])


def shares(threads, rates, log_window):
    """Lines of each thread, and the logarithm of the age at which a line leaves. Under LRU this age is equal for all."""

    def held(log_age):
        age = math.exp(log_age)
        return [occupancy(thread.phase, rate * thread.llc * age) for thread, rate in zip(threads, rates)]

    def excess(log_age):
        return sum(held(log_age)) - LLC_LINES

    log_window = root(excess, 0.0, 40.0, log_window, 1e-5 * LLC_LINES, 0.05)
    return held(log_window), log_window


def root(function, low, high, guess, enough, near):
    """Where a rising function is nearly 0: around the guess if it lies there, else between the ends (Illinois method)."""
    for end in (guess - near, guess + near):
        if low < end < high:
            if function(end) < 0:
                low = end
            else:
                high = end
    below, above, last = function(low), function(high), 0
    if below >= 0 or above <= 0:
        return low if below >= 0 else high
    for _ in range(100):
        middle = (low * above - high * below) / (above - below)
        value = function(middle)
        if abs(value) < enough:
            break
        if value < 0:
            low, below, above = middle, value, above / 2 if last < 0 else above
        else:
            high, above, below = middle, value, below / 2 if last > 0 else below
        last = value
    return middle


class Thread:
    """A running thread, with what its sibling leaves it."""

    def __init__(self, phase, sibling):
        self.phase, self.sibling = phase, None
        self.l2, self.llc, self.mlp, self.crowd = phase.l2 / 1000, phase.llc / 1000, phase.mlp, 0.0
        if sibling:
            # LRU divides a private cache by need; misses grow with the square root of what is missing (Hartstein et al. 2006).
            self.l2 *= math.sqrt(max(1.0, (phase.l1_kib + sibling.l1_kib) / max(L1_KIB, phase.l1_kib)))
            self.llc *= math.sqrt(max(1.0, (phase.l2_kib + sibling.l2_kib) / max(L2_KIB, phase.l2_kib)))
            self.llc = min(self.llc, self.l2)
            self.mlp = min(1 + (phase.mlp - 1) * PARTITIONED, SUPERQUEUE * phase.mlp / (phase.mlp + sibling.mlp))
            # Both dispatch at once: they divide the slots if they want more than there are.
            self.crowd = max(0.0, phase.width + sibling.width - 1)

    def times(self, ghz, miss):
        """Nanoseconds of an instruction: busy, waiting with an idle bus, and waiting for each nanosecond of the queue."""
        busy = self.phase.cpi / ghz * (1 + self.crowd * (self.sibling.active if self.sibling else 0))
        wait = (self.l2 * L2_CYCLES / ghz + self.llc * (LLC_NS + miss * MEMORY_NS)) / self.mlp
        return busy, wait, self.llc * miss / self.mlp


def queue_ns(reads, writes, hits, channels):
    """Wait in the queue of a channel: Pollaczek-Khinchine with reads, batches of writes and refreshes as its customers.

    `reads` and `writes` are lines a nanosecond, `hits` the reads that hit an open row.
    """
    misses, batches = (reads - hits) / channels, writes / channels / WRITE_BATCH
    hits = hits / channels
    mean = BURST_NS + (ROW_MISS_NS - BURST_NS) * misses / max(hits + misses, 1e-12)
    batch_ns = WRITE_BATCH * mean + TURN_NS
    load = hits * BURST_NS + misses * ROW_MISS_NS + batches * batch_ns + REFRESH_NS / REFRESH_EACH_NS
    moment = hits * BURST_NS**2 + misses * ROW_MISS_NS**2 + batches * batch_ns**2 + REFRESH_NS**2 / REFRESH_EACH_NS
    return moment / 2 / (1 - load) if load < 1 else math.inf


@functools.lru_cache(200_000)
def solve(cores, channels):
    """Flows {(core's phases, phase): flow}, power in W and clock in GHz, for the phases on each active core."""
    threads, ghz = [], GHZ[len(cores)]
    for core in cores:
        pair = [Thread(phase, core[1 - at] if len(core) > 1 else None) for at, phase in enumerate(core)]
        for thread in pair:
            thread.sibling = pair[1 - pair.index(thread)] if len(pair) > 1 else None
            thread.active = 0.7
        threads += pair
    rates, log_window, queue = [1.0] * len(threads), 14.0, 20.0
    for _ in range(200):
        lines, log_window = shares(threads, rates, log_window)
        misses = [miss_ratio(thread.phase, held) for thread, held in zip(threads, lines)]
        times = [thread.times(ghz, miss) for thread, miss in zip(threads, misses)]

        def excess(queue):
            reads = [thread.llc * miss / (busy + wait + each * queue)
                     for thread, miss, (busy, wait, each) in zip(threads, misses, times)]
            writes = sum(read * thread.phase.dirty for read, thread in zip(reads, threads))
            hits = sum(read * thread.phase.rows for read, thread in zip(reads, threads))
            return queue - min(queue_ns(sum(reads), writes, hits, channels), 1e5)

        queue, before = root(excess, 0.0, 1e4, queue, 1e-4, 1.0), rates
        rates = [1 / (busy + wait + each * queue) for busy, wait, each in times]
        for thread, rate, (busy, _, _) in zip(threads, rates, times):
            thread.active = (thread.active + busy * rate) / 2
        if all(abs(new / old - 1) < 1e-5 for new, old in zip(rates, before)):
            break
    flows = [Flow(rate, rate * thread.phase.l1 / 1000, rate * thread.llc, rate * thread.llc * miss,
                  rate * thread.llc * miss * thread.phase.dirty) for thread, rate, miss in zip(threads, rates, misses)]
    scale = (ghz / GHZ[0]) ** 2  # the voltage falls with the clock
    watts = UNCORE_W + len(cores) * CORE_W * scale
    for flow in flows:
        watts += scale * flow.instructions * INSTRUCTION_NJ + flow.llc * LLC_NJ + (flow.reads + flow.writes) * MEMORY_NJ
    phases = [(core, phase) for core in cores for phase in core]
    return dict(zip(phases, flows)), watts, ghz


class Socket(Physics):
    """The socket as the timeline asks for it."""

    cores, threads, domains, programs, llc_bytes = CORES, THREADS, 1, PROGRAMS, LLC_LINES * 64

    def __init__(self, channels=2):
        super().__init__()
        self.channels, self.name = channels, f"socket, {channels} channels"

    def flows(self, running):
        cores = {}
        for cpu in sorted(running):
            cores.setdefault(cpu % CORES, []).append(running[cpu][0])
        cores = {core: tuple(sorted(phases)) for core, phases in cores.items()}
        flows, watts, ghz = solve(tuple(sorted(cores.values())), self.channels)
        return {cpu: (flows[cores[cpu % CORES], phase], ghz) for cpu, (phase, _) in running.items()}, watts


class World(Timeline):
    physics = Socket()


def rates(placement, channels=2):
    """True speed of each job relative to alone, for {job: (phase, CPUs)}: what an oracle searches with.

    Socket.phase_at has a job's phase. Jobs are on distinct CPUs.
    """
    return (World.physics if channels == World.physics.channels else Socket(channels)).rates(placement)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels", type=int, default=2, choices=(1, 2), help="memory channels")
    World.physics = Socket(parser.parse_args().channels)
    World.run()
