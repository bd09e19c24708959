# /// script
# dependencies = ["cosched"]
# ///
"""A world of two sockets: each has eight cores without SMT, a cache with random replacement, and a memory domain.

    cosched run examples/worlds/mixes/numa-1.toml --on "cmd:python3 examples/worlds/numa.py --channels 3"

A job has `given = { program = "stencil", instructions = 4e10 }`. PROGRAMS below has the programs. Its pages are in the domains
where it ran first. README.md explains each law. With COSCHED_WORLD_TRUTH=FILE the world appends a line of JSON to FILE for
each job that ends.
"""

import argparse
import functools
import math
from typing import NamedTuple

from timeline import Flow, Physics, Timeline

# Cores, caches and clocks of two Intel Xeon Silver 4110. Turbo: Intel's specification update for the family, from memory.
CORES, SOCKETS = 16, 2
GHZ = [3.0, 3.0, 3.0, 2.7, 2.7, 2.4, 2.4, 2.4, 2.4]  # by the active cores of a socket, without AVX
LLC_LINES = 11 * 2**20 // 64
LLC_NS = 20.0  # load-to-use, Skylake-SP: McCalpin, and 7-cpu.com
# Latency under load by traffic, of two of these processors with six channels each: Intel Memory Latency Checker 3.5, published
# in Intel's forum on software tuning (thread 1126268). MB/s of both sockets, ns.
MEASURED = [(1237.6, 81.96), (2583.5, 84.20), (4383.3, 85.56), (7680.3, 87.24), (13463.5, 88.79), (22580.9, 90.85),
            (42695.4, 94.56), (68357.8, 98.94), (131282.0, 123.71), (135267.3, 129.67), (135655.9, 130.31)]
CHANNEL_LINES = 135655.9e6 / 12 / 64 / 1e9  # that a channel moves in a nanosecond at most
CURVE = [(0.0, 81.5)] + [(rate / MEASURED[-1][0], ns) for rate, ns in MEASURED]
WALL_NS = 20_000.0  # above the measured traffic a line waits this much longer for each 100 % of load: what is sent just fits
# On Skylake-SP a read from the other socket takes some 55 ns longer, and two UPI links carry some 34 GB/s of reads in a
# direction: magnitudes of published Memory Latency Checker runs, from memory.
HOP_NS, LINK_LINES = 55.0, 34.0 / 64
# Power: activity counts times energies, as in Bellosa 2000; 85 W a socket. DRAM: 20 pJ a bit, as in Malladi 2012.
UNCORE_W, CORE_W, INSTRUCTION_NJ, LLC_NJ, MEMORY_NJ, LINK_NJ = 20.0, 4.0, 0.9, 2.0, 10.0, 4.0


class Phase(NamedTuple):
    """A stationary part of a program. Accesses are for a thousand instructions."""

    seconds: float  # its length alone
    cpi: float  # cycles for an instruction if each access hit the private caches
    l1: float
    llc: float
    sets: tuple  # working sets: (MB, part of the accesses), each line of a set as likely as the others; the rest is a stream
    mlp: float  # misses that overlap, with prefetches
    dirty: float  # lines written back for each line read


# Working sets have the sizes and miss counts at which published curves of SPEC CPU2006 and NPB bend: Jaleel 2007, Bienia 2008.
PROGRAMS = {name: [Phase(*row) for row in rows] for name, rows in {
    # compute bound
    "fold": [(10, 0.48, 380, 0.5, ((0.5, 0.9),), 3.0, 0.2)],
    "raytrace": [(10, 0.55, 400, 0.9, ((1.0, 0.85), (6.0, 0.1)), 2.0, 0.2)],
    "search": [(10, 0.70, 310, 0.8, ((0.7, 0.7), (9.0, 0.15)), 1.8, 0.3)],
    "dense": [(6, 0.36, 450, 1.8, ((1.2, 0.85),), 5.0, 0.3), (4, 0.40, 440, 2.2, ((1.4, 0.8),), 5.0, 0.3)],
    "hash": [(8, 0.45, 250, 0.3, ((0.3, 0.9),), 2.0, 0.2), (3, 0.5, 300, 5, ((1.0, 0.4),), 6.0, 0.5)],
    # sensitive to their share of the cache
    "index": [(10, 0.65, 350, 18, ((1.5, 0.45), (7.0, 0.50)), 2.0, 0.3)],
    "route": [(6, 0.70, 360, 22, ((2.0, 0.4), (6.0, 0.52)), 1.8, 0.35), (4, 0.65, 350, 12, ((1.5, 0.6), (4.0, 0.3)), 1.8, 0.3)],
    "cluster": [(8, 0.55, 330, 20, ((5.0, 0.93),), 4.0, 0.1), (3, 0.5, 330, 6, ((1.0, 0.8),), 3.0, 0.2)],
    "align": [(10, 0.50, 340, 9, ((0.8, 0.5), (3.0, 0.42)), 2.5, 0.2)],
    # streams
    "stencil": [(10, 0.55, 340, 30, ((1.0, 0.08),), 9.0, 0.45)],
    "triad": [(10, 0.45, 250, 40, (), 11.0, 0.5)],
    "spectral": [(3, 0.50, 370, 26, ((4.0, 0.2),), 8.0, 0.5), (3, 0.42, 420, 3, ((0.8, 0.8),), 4.0, 0.3)],
    "lattice": [(5, 0.55, 330, 24, ((2.0, 0.1),), 7.0, 0.4), (3, 0.55, 330, 21, ((2.0, 0.15),), 7.0, 0.4)],
    # pointer chasing
    "graph": [(6, 0.75, 360, 34, ((1.0, 0.25), (12.0, 0.35), (60.0, 0.35)), 3.0, 0.2),
              (4, 0.70, 350, 22, ((1.0, 0.3), (8.0, 0.4), (40.0, 0.2)), 4.0, 0.3)],
    "chain": [(10, 0.60, 300, 14, ((1.0, 0.3), (30.0, 0.6)), 1.3, 0.1)],
    # mixed
    "compile": [(4, 0.65, 370, 6, ((1.0, 0.5), (5.0, 0.35)), 2.2, 0.4), (2, 0.6, 380, 18, ((2.0, 0.3), (8.0, 0.2)), 4.0, 0.5)],
    "mine": [(5, 0.58, 340, 8, ((0.8, 0.5), (6.0, 0.3)), 2.5, 0.3), (3, 0.5, 300, 22, ((1.0, 0.1),), 8.0, 0.2),
             (4, 0.58, 340, 9, ((0.8, 0.5), (6.0, 0.3)), 2.5, 0.3)],
}.items()}


def loaded_ns(load):
    """Latency of a memory domain by its load, 1 being all that it can move: the measured curve, and a wall at its end."""
    if load >= 1:
        return CURVE[-1][1] + (load - 1) * WALL_NS
    for (low, low_ns), (high, high_ns) in zip(CURVE, CURVE[1:]):
        if load <= high:
            return low_ns + (load - low) / (high - low) * (high_ns - low_ns)


def random_replacement(streams, sets):
    """The rate at which a random line leaves a cache that random replacement has filled.

    Under independent references a line that is referenced with rate r is in the cache for the part r / (r + rate out) of the
    time: a Markov chain of two states (King 1971, Gelenbe 1973; the approximation for large caches of Martina et al. 2014).
    `streams` is the rate of lines that are used once, `sets` has lines and reference rate of one line.
    """
    if sum(lines for lines, _ in sets) <= LLC_LINES and streams == 0:
        return 0.0
    low, high = -40.0, 5.0  # logarithms
    for _ in range(60):
        middle = (low + high) / 2
        out = math.exp(middle)
        held = streams / out + sum(lines * rate / (rate + out) for lines, rate in sets)
        low, high = (middle, high) if held > LLC_LINES else (low, middle)
        if high - low < 1e-4:
            break
    return math.exp((low + high) / 2)


def crossing(function, low, high):
    """Where a falling function of the latency meets the latency: Illinois method."""
    below, above, last = function(low) - low, function(high) - high, 0
    if below <= 0:
        return low
    for _ in range(60):
        middle = (low * above - high * below) / (above - below)
        value = function(middle) - middle
        if abs(value) < 1e-2:
            break
        if value > 0:
            low, below, above = middle, value, above / 2 if last > 0 else above
        else:
            high, above, below = middle, value, below / 2 if last < 0 else below
        last = value
    return middle


class Thread:
    """A running thread: its socket, and the part of its pages in each domain."""

    def __init__(self, phase, socket, home):
        self.phase, self.socket, self.home = phase, socket, home
        self.llc, self.rate, self.miss = phase.llc / 1000, 0.5, 0.5
        self.stream = 1 - sum(part for _, part in phase.sets)
        self.sets = [(mb * 16384, part) for mb, part in phase.sets]

    def set_misses(self, out):
        """The part of its accesses that miss where lines leave at this rate."""
        touch = self.rate * self.llc
        self.miss = self.stream
        for lines, part in self.sets:
            self.miss += part * out / (touch * part / lines + out)

    def reads(self, ghz, memory_ns):
        """Lines read in a nanosecond, by the latency of the average miss. Sets its rate."""
        wait = self.llc * (LLC_NS + self.miss * memory_ns) / self.phase.mlp
        self.rate = 1 / (self.phase.cpi / ghz + wait)
        return self.rate * self.llc * self.miss


@functools.lru_cache(200_000)
def solve(places, channels):
    """Flows {(phase, socket, home): flow}, power in W and clocks in GHz, for sorted places (phase, socket, home)."""
    threads = [Thread(*place) for place in places]
    active = [sum(thread.socket == socket for thread in threads) for socket in range(SOCKETS)]
    ghz = [GHZ[count] for count in active]
    memory, hop = [90.0] * SOCKETS, [HOP_NS] * SOCKETS  # hop[d]: on the way out of domain d
    capacity = channels * CHANNEL_LINES

    def sent(domain, far):
        """Lines that leave a domain, or cross the link from it, at the present latencies."""
        total = 0.0
        for thread in threads:
            part = thread.home[domain]
            if part and (thread.socket != domain or not far):
                ns = sum(at * (memory[there] - LLC_NS + (hop[there] if there != thread.socket else 0))
                         for there, at in enumerate(thread.home) if at)
                total += part * thread.reads(ghz[thread.socket], ns) * (1 if far else 1 + thread.phase.dirty)
        return total

    def settle(latencies, domain, law, low, high, far):
        def found(ns):
            latencies[domain] = ns
            return law(sent(domain, far))

        latencies[domain] = crossing(found, low, high)

    for _ in range(100):
        before = [thread.rate for thread in threads]
        for socket in range(SOCKETS):
            here = [thread for thread in threads if thread.socket == socket]
            streams = sum(thread.rate * thread.llc * thread.stream for thread in here)
            out = random_replacement(streams, [(lines, thread.rate * thread.llc * part / lines)
                                               for thread in here for lines, part in thread.sets])
            for thread in here:
                thread.set_misses(out)
        for domain in range(SOCKETS):
            settle(memory, domain, lambda lines: loaded_ns(lines / capacity), CURVE[0][1], WALL_NS, False)
            settle(hop, domain, lambda lines: HOP_NS * loaded_ns(lines / LINK_LINES) / CURVE[0][1], HOP_NS, WALL_NS, True)
        for domain in range(SOCKETS):
            sent(domain, False)
        if all(abs(thread.rate / old - 1) < 2e-5 for thread, old in zip(threads, before)):
            break
    flows, watts = {}, SOCKETS * UNCORE_W
    for place, thread in zip(places, threads):
        reads, scale = thread.rate * thread.llc * thread.miss, (ghz[thread.socket] / GHZ[0]) ** 2
        l1, llc = thread.rate * thread.phase.l1 / 1000, thread.rate * thread.llc
        flow = Flow(thread.rate, l1, llc, reads, reads * thread.phase.dirty)
        far = flow.reads * (1 - thread.home[thread.socket])
        watts += (CORE_W + flow.instructions * INSTRUCTION_NJ) * scale
        watts += flow.llc * LLC_NJ + (flow.reads + flow.writes) * MEMORY_NJ + far * LINK_NJ
        flows[place] = flow
    return flows, watts, ghz


class Numa(Physics):
    """The two sockets as the timeline asks for them."""

    cores, domains, programs, llc_bytes = CORES, SOCKETS, PROGRAMS, LLC_LINES * 64

    def __init__(self, channels=3):
        super().__init__()
        self.channels, self.name = channels, f"two sockets, {channels} channels each"

    def flows(self, running):
        places = {cpu: (phase, self.domain(cpu), home) for cpu, (phase, home) in running.items()}
        flows, watts, ghz = solve(tuple(sorted(places.values())), self.channels)
        return {cpu: (flows[place], ghz[place[1]]) for cpu, place in places.items()}, watts


class World(Timeline):
    physics = Numa()


def rates(placement, channels=3):
    """True speed of each job relative to alone, for {job: (phase, CPUs, home)}: what an oracle searches with.

    Numa.phase_at has a job's phase, Numa.touched its home by the CPUs where it ran first. Jobs are on distinct CPUs.
    """
    return (World.physics if channels == World.physics.channels else Numa(channels)).rates(placement)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--channels", type=int, default=3, choices=range(1, 7), help="memory channels of each socket")
    World.physics = Numa(parser.parse_args().channels)
    World.run()
