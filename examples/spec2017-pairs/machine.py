"""The steady state of gangs that share a last-level cache and a memory: what the simulated machine settles at.

A gang is a program with its threads. Its unit of work takes 1 s alone. Sizes are in MB, traffic in GB per unit of work or per
second, and the latency L is relative to the idle latency. All arrays have a row for each scenario and a column for each gang.

- misses per unit of work with h MB held: m(h) = stream + reuse * g(h), see `share_missed`
- time of a unit of work: T = core + m(h) * wait * (L - HIT); hits cost HIT and are part of `core`
- lines are lost in proportion to h * age^4, with age = integral from 0 to h of dh' / (m(h') / T), as in `crates/sim`
- latency: L = 1 + a * u^b / (1 - u), with the load u = all traffic / GB_PER_S, and its tangent beyond LAST_LOAD
"""

import numpy as np

HIT = 0.2  # Time of a hit, relative to the idle latency.
GB_PER_S = 34.0  # The peak of the memory. Nothing measured shows it, so it only sets the unit of traffic.
LAST_LOAD = 0.97
AGE_POWER = 4.0
LEAST_MISSES = 1e-3  # As a share of all accesses. A bubble that fits would have none.
LEAST_MISSES_OF_AGE = 0.01  # The same in the age: rarer misses don't tell lines apart, as in `crates/sim`.
FIELDS = ["stream", "reuse", "scale", "power", "is_bubble", "wait", "writes", "core", "runs"]

_nodes, _weights = np.polynomial.legendre.leggauss(6)
NODES, WEIGHTS = (_nodes + 1) / 2, _weights / 2


def gangs(rows, columns):
    """Gangs that do not run yet."""
    filled = {field: np.zeros((rows, columns)) for field in FIELDS}
    for field in ["scale", "power", "core"]:
        filled[field][:] = 1
    return filled


def share_missed(held, scale, power, is_bubble):
    """The share of the accesses to reused lines that miss.

    A program: (1 - h / (power * scale))^power, linear for power 1 and exponential for large ones. A bubble walks through its
    footprint, which is `scale`: 1 - (h / scale)^power.
    """
    of_program = np.maximum(1 - held / scale / power, 0) ** power
    of_bubble = 1 - np.minimum(held / scale, 1) ** power
    return np.where(is_bubble > 0, of_bubble, of_program)


def latency(load, a, b):
    """The latency by load, and its slope."""
    known = np.minimum(load, LAST_LOAD)
    value = 1 + a * known**b / (1 - known)
    slope = a * (b * known ** (b - 1) / (1 - known) + known**b / (1 - known) ** 2)
    return value + slope * np.maximum(load - known, 0), slope


def steady_speeds(gang, llc_mb, a, b, steps=60):
    """The units of work per second of each gang. `llc_mb`, `a` and `b` are columns with a row for each scenario."""
    runs = gang["runs"] > 0
    stream = np.maximum(gang["stream"], 1e-6 * runs)
    accesses = stream + gang["reuse"]
    # A bubble never holds more than its footprint.
    most = np.where(gang["is_bubble"] > 0, gang["scale"], 1e9)

    def misses_with(held, least):
        missed = share_missed(held, gang["scale"], gang["power"], gang["is_bubble"])
        return np.maximum(stream + gang["reuse"] * missed, least * accesses + 1e-9)

    held = np.where(runs, llc_mb / np.maximum(runs.sum(1, keepdims=True), 1), 1e-9)
    held = np.minimum(held, most)
    delay = np.full((len(held), 1), 1.2)
    damping, last = np.ones_like(delay), np.zeros_like(held)
    for step in range(steps):
        misses = misses_with(held, LEAST_MISSES) * runs
        for _ in range(2):
            speed = runs / (gang["core"] + misses * gang["wait"] * np.maximum(delay - HIT, 0))
            delay = _latency_step(gang, misses, speed, delay, a, b)
        age = sum(weight / misses_with(held * node, LEAST_MISSES_OF_AGE) for node, weight in zip(NODES, WEIGHTS))
        age = np.where(runs, age * held / np.maximum(speed, 1e-12), 1e-12)
        # Positive where a gang reads more than it would lose.
        surplus = speed * misses / (np.maximum(held, 1e-9) * np.maximum(age, 1e-12) ** AGE_POWER)
        surplus = np.log(np.where(runs, np.maximum(surplus, 1e-300), 1))
        surplus -= (surplus * held).sum(1, keepdims=True) / held.sum(1, keepdims=True)
        if step > 5:
            swings = (surplus * last * held).sum(1, keepdims=True) < 0
            damping = np.clip(np.where(swings, damping * 0.55, damping * 1.07), 0.02, 1)
        last = surplus
        change = np.clip(surplus * 0.7 / (AGE_POWER + 1) * damping, -2, 2)
        wished = np.maximum(held, 1e-9) * np.exp(change) * runs
        held = np.where(runs, _fitted(wished, most, llc_mb), 1e-9)
    return speed


def _latency_step(gang, misses, speed, delay, a, b):
    """A Newton step towards the latency that the traffic at it causes."""
    lines = speed * misses * (1 + gang["writes"])
    caused, slope = latency(lines.sum(1, keepdims=True) / GB_PER_S, a, b)
    load_slope = -(lines * misses * gang["wait"] * speed).sum(1, keepdims=True) / GB_PER_S
    step = (caused - delay) / (1 - slope * load_slope)
    return np.maximum(delay + np.clip(step, -0.4 * delay, 0.6 * delay), 1)


def _fitted(wished, most, llc_mb):
    """What each gang holds when all together hold the cache, none more than its most."""
    full = np.zeros_like(wished, bool)
    for _ in range(3):
        left = llc_mb - np.where(full, most, 0).sum(1, keepdims=True)
        free = np.where(full, 0, wished).sum(1, keepdims=True)
        held = np.where(full, most, wished * (left / np.maximum(free, 1e-300)))
        full = full | (held >= most)
    return np.minimum(held, most)
