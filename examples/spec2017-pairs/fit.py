"""Fits the server and the programs to what each program does alone, or the programs to pairs.

    python3 fit.py FOLDER curves      writes machine.csv, latency.toml and programs.csv; starts from the last fit if they are there
    python3 fit.py FOLDER pairs       writes programs_pairs.csv and shown_pairs.csv, from programs.csv and the pairs
    python3 fit.py FOLDER validate    predicts each tenth of the pairs from the others, as `pairs` would
    python3 fit.py FOLDER learn       predicts pairs that were never run from curves and a few runs of each program
"""

import csv
import re
import sys
from pathlib import Path

import numpy as np

from machine import GB_PER_S, HIT, LAST_LOAD, gangs, latency, share_missed, steady_speeds
from measurements import BUBBLES_MB, HALVES, Measurements, log_means

HERE = Path(__file__).parent

# The logarithm of each free figure has this median and standard deviation before anything is measured.
OF_MACHINE = {
    "llc_mb": (16, 0.25),
    "latency_a": (0.5, 1),
    "latency_b": (3, 0.5),
    "power": (2, 0.5),  # Of the curve of all programs.
    "walk_power": (4, 0.7),  # The streaming half of a bubble.
    "walk_gb": (40, 0.8),
    "walk_wait": (0.05, 0.8),
    "random_gb": (4, 1),  # Its random half.
    "random_wait": (0.3, 1),
}
OF_PROGRAM = {
    "stream_gb": (1, 1.5),
    "reuse_gb": (1, 1.5),
    "scale_mb": (4, 0.8),
    "wait_s_per_gb": (0.2, 1),
    "writes_per_read": (0.4, 0.7),
    "alone": (1, 0.006),  # Error of the single run alone, by which a curve is scaled.
}
MACHINE_COUNT, EACH = len(OF_MACHINE), len(OF_PROGRAM)
FILE_FIGURES = 5  # All but `alone`.

CURVE_SD, PROBE_SD, PAIR_SD = 0.008, 0.006, 0.012
FAR = 2.5  # Residuals beyond this many standard deviations count linearly.
LEAST_GAIN, MOST_IDLE = 0.02, 6  # The search ends after so many steps of less gain: the valley is flat.
LEAST_CORE_S = 0.05  # The least core time of a unit of work, without hits.
# A cyclic walk falls off a cliff in an LRU cache, with two steady states near it. Real caches hash their sets, so curves
# are smeared: each bubble is the mean of three sizes.
SMEAR = [(0.85, 0.25), (1.0, 0.5), (1.15, 0.25)]
GAP_S = 2  # Assumed: a neighbour is idle between two of its runs while `runcpu` checks its results.

# Programs with OpenMP ran on 3 CPUs, but their thread counts are not published. xz runs as one thread here: with three, each
# would wait for less than one miss at a time.
OPENMP = "bwaves cactuBSSN lbm cam4 pop2 imagick nab fotonik3d roms".split()

# The same draws as in `validate`: runs of two campaigns are learnt from, two others judge, a fifth of the pairs is held back.
LEARN, JUDGE = ["test", "cpu_freq"], ["conservative", "ondemand"]
ONE_HELD_BACK_OF, SEEDS = 5, 20
TOO_SHORT = "cam4"  # It runs for 2 s.


def logs(figures):
    """Median and standard deviation of the logarithms."""
    return np.array([(np.log(median), sd) for median, sd in figures.values()]).T


class Machine:
    """The figures of the machine: a column of each, with a row for each scenario."""

    def __init__(self, theta):
        for at, name in enumerate(OF_MACHINE):
            setattr(self, name, np.exp(np.clip(theta[:, at : at + 1], -12, 12)))

    def repeated(self, count):
        copy = Machine.__new__(Machine)
        for name in OF_MACHINE:
            setattr(copy, name, np.repeat(getattr(self, name), count, 0))
        return copy

    def speeds(self, gang):
        return steady_speeds(gang, self.llc_mb, self.latency_a, self.latency_b)


def put_programs(gang, rows, column, logarithms, machine):
    """Runs a program in each of these rows. Its time in the core follows from a unit of work of 1 s alone."""
    stream, reuse, scale, wait, writes = np.exp(np.clip(logarithms[:, :FILE_FIGURES], -12, 8)).T
    llc, power = machine.llc_mb[:, 0], machine.power[:, 0]
    misses = stream + reuse * share_missed(llc, scale, power, 0)
    delay, _ = latency(misses * (1 + writes) / GB_PER_S, machine.latency_a[:, 0], machine.latency_b[:, 0])
    accesses = stream + reuse * share_missed(1.0, scale, power, 0)
    core = np.maximum(1 - misses * wait * (delay - HIT), LEAST_CORE_S + HIT * wait * accesses)
    figures = dict(stream=stream, reuse=reuse, scale=scale, power=power, wait=wait, writes=writes, core=core, runs=1)
    for field, value in figures.items():
        gang[field][rows, column] = value
    return core


def put_bubbles(gang, rows, bubble_mb, machine):
    """Runs a bubble in each of these rows: three streaming and two random threads, both of which write what they read."""
    for column, footprint, gb, power, wait in [
        (1, bubble_mb / 4 + 0.64, machine.walk_gb, machine.walk_power, machine.walk_wait),
        (2, bubble_mb / 2 + 0.64, machine.random_gb, np.ones_like(machine.power), machine.random_wait),
    ]:
        figures = dict(reuse=gb[:, 0], scale=footprint, power=power[:, 0], wait=wait[:, 0], writes=1, is_bubble=1)
        for field, value in (figures | dict(runs=bubble_mb > 0)).items():
            gang[field][rows, column] = value


class CurveFit:
    """The fit of the machine, of all programs and of both halves of the probe to what each does alone."""

    def __init__(self, known):
        self.programs = len(known.programs)
        self.actors = self.programs + len(HALVES)
        self.curves = np.concatenate([known.curves, known.probe_beside_bubbles])[:, 1:]
        self.contention = known.probe_beside_programs
        priors = [logs(OF_MACHINE)] + [logs(OF_PROGRAM)] * self.actors
        self.median, self.sd = np.concatenate(priors, axis=1)

    def split(self, theta):
        return Machine(theta), theta[:, MACHINE_COUNT:].reshape(len(theta), self.actors, EACH)

    def start(self):
        """The last fit, or else the medians with a rough guess at what each program misses."""
        theta = self.median.copy()
        of_actor = theta[MACHINE_COUNT:].reshape(self.actors, EACH)
        if (HERE / "machine.csv").exists() and (HERE / "programs.csv").exists():
            theta[:MACHINE_COUNT] = read_machine()
            of_actor[:, :FILE_FIGURES] = read_programs()
        else:
            speed = self.contention.mean(0)
            of_actor[: self.programs, 0] = np.log(np.clip(25 * (1 - speed) ** 1.2, 0.05, 20))
            of_actor[self.programs :, 0] = np.log(2)
            of_actor[self.programs :, 1] = np.log(6)
            of_actor[self.programs :, 3] = np.log([0.15, 0.08])
        return theta

    def predict(self, theta):
        """Curves [theta, actor, bubble] and the speeds of the probe beside programs [theta, half, program]."""
        count = len(theta)
        machine, actors = self.split(theta)
        sizes = np.concatenate([[0]] + [BUBBLES_MB[1:] * factor for factor, _ in SMEAR])
        beside_bubbles = count * self.actors * len(sizes)
        halves = len(HALVES) * self.programs
        gang = gangs(beside_bubbles + count * halves, 3)

        of_curves = machine.repeated(self.actors * len(sizes))
        rows = slice(0, beside_bubbles)
        each_size = np.repeat(actors.reshape(count * self.actors, EACH), len(sizes), 0)
        put_programs(gang, rows, 0, each_size, of_curves)
        put_bubbles(gang, rows, np.tile(sizes, count * self.actors), of_curves)

        of_probe = machine.repeated(halves)
        rows = slice(beside_bubbles, None)
        probe = np.repeat(actors[:, self.programs :], self.programs, 1).reshape(-1, EACH)
        beside = np.tile(actors[:, : self.programs], (1, len(HALVES), 1)).reshape(-1, EACH)
        put_programs(gang, rows, 0, probe, of_probe)
        put_programs(gang, rows, 1, beside, of_probe)

        both = Machine.__new__(Machine)
        for name in OF_MACHINE:
            setattr(both, name, np.concatenate([getattr(of_curves, name), getattr(of_probe, name)]))
        speeds = both.speeds(gang)[:, 0]
        by_size = speeds[:beside_bubbles].reshape(count, self.actors, len(sizes))
        alone, bubbles = by_size[:, :, :1], len(BUBBLES_MB) - 1
        curves = 0
        for at, (_, weight) in enumerate(SMEAR):
            curves = curves + weight * by_size[:, :, 1 + bubbles * at : 1 + bubbles * (at + 1)]
        curves = curves / alone * np.exp(actors[:, :, 5:6])
        contention = speeds[beside_bubbles:].reshape(count, len(HALVES), self.programs)
        return curves, contention / alone[:, self.programs :]

    def errors(self, theta):
        """Errors in standard deviations, and those of the figures from their priors at the end."""
        curves, contention = self.predict(theta)
        curves = (curves - self.curves) / CURVE_SD
        curves[:, self.programs :] *= CURVE_SD / PROBE_SD
        contention = (contention - self.contention) / PROBE_SD
        parts = [curves, contention, (theta - self.median) / self.sd]
        return np.concatenate([part.reshape(len(theta), -1) for part in parts], 1)

    def slopes(self, theta, step=1e-3):
        """The errors, and their slopes by each figure. A figure of all programs is changed at once, as a row of the
        curves depends on one actor only."""
        changes, columns = [theta], []
        for at in range(MACHINE_COUNT):
            changes.append(theta + step * (np.arange(len(theta)) == at))
            columns.append((at, None))
        for at in range(EACH):
            for actors in [range(self.programs), range(self.programs, self.actors)]:
                changed = theta.copy()
                changed[MACHINE_COUNT:].reshape(self.actors, EACH)[actors, at] += step
                changes.append(changed)
                columns.append((at, actors))
        errors = self.errors(np.array(changes))
        measured = errors.shape[1] - len(theta)
        slopes = np.zeros((errors.shape[1], len(theta)))
        slopes[measured:] = np.diag(1 / self.sd)
        for (at, actors), changed in zip(columns, errors[1:, :measured]):
            slope = (changed - errors[0, :measured]) / step
            if actors is None:
                slopes[:measured, at] = slope
                continue
            for actor in actors:
                slopes[:measured, MACHINE_COUNT + actor * EACH + at] = np.where(self._depends_on(actor), slope, 0)
        return errors[0], slopes

    def _depends_on(self, actor):
        """Which measurements depend on the actor."""
        curves = np.zeros(self.curves.shape, bool)
        curves[actor] = True
        contention = np.zeros(self.contention.shape, bool)
        if actor < self.programs:
            contention[:, actor] = True
        else:
            contention[actor - self.programs] = True
        return np.concatenate([curves.ravel(), contention.ravel()])


class PairFit:
    """The fit of programs to pairs, on a machine that stays as it is, with their curve fits as priors."""

    PRIOR_SD = 0.5

    def __init__(self, machine, programs, pairs, alone_s):
        self.machine, self.median = machine, programs.ravel()
        self.sd = np.full(self.median.shape, self.PRIOR_SD)
        self.victims, self.neighbours = np.array(list(pairs)).T
        self.measured = np.array(list(pairs.values()))
        self.busy = (alone_s / (alone_s + GAP_S))[self.neighbours]

    def only(self, chosen):
        """The same with some of the pairs only."""
        part = PairFit.__new__(PairFit)
        part.__dict__.update(self.__dict__)
        for name in ["victims", "neighbours", "measured", "busy"]:
            setattr(part, name, getattr(self, name)[chosen])
        return part

    def predict(self, victims, neighbours, busy):
        """Performance of programs beside others, by their figures."""
        count = len(victims)
        gang = gangs(2 * count, 2)
        machine = self.machine.repeated(2 * count)
        once = self.machine.repeated(count)
        put_programs(gang, slice(0, count), 0, victims, once)
        put_programs(gang, slice(0, count), 1, neighbours, once)
        put_programs(gang, slice(count, None), 0, victims, once)
        speeds = machine.speeds(gang)[:, 0]
        return 1 - busy * (1 - speeds[:count] / speeds[count:])

    def predictions(self, theta):
        """The performance of each pair."""
        programs = theta.reshape(-1, FILE_FIGURES)
        return self.predict(programs[self.victims], programs[self.neighbours], self.busy)

    def errors(self, thetas):
        rows = []
        for theta in thetas:
            errors = (self.predictions(theta) - self.measured) / PAIR_SD
            rows.append(np.concatenate([errors, (theta - self.median) / self.sd]))
        return np.array(rows)

    def slopes(self, theta, step=1e-3):
        """The errors, and their slopes: each pair depends on the figures of two programs."""
        programs = theta.reshape(-1, FILE_FIGURES)
        victims, neighbours, busy, cells = [], [], [], []
        for at in range(len(theta)):
            changed = (theta + step * (np.arange(len(theta)) == at)).reshape(programs.shape)
            program = at // FILE_FIGURES
            (pairs,) = np.nonzero((self.victims == program) | (self.neighbours == program))
            victims.append(changed[self.victims[pairs]])
            neighbours.append(changed[self.neighbours[pairs]])
            busy.append(self.busy[pairs])
            cells += [(pair, at) for pair in pairs]
        changed = self.predict(*[np.concatenate(one) for one in [victims, neighbours, busy]])
        errors = self.errors([theta])[0]
        count = len(self.measured)
        slopes = np.zeros((len(errors), len(theta)))
        slopes[count:] = np.diag(1 / self.sd)
        for (pair, at), value in zip(cells, changed):
            slopes[pair, at] = ((value - self.measured[pair]) / PAIR_SD - errors[pair]) / step
        return errors, slopes


def cost(errors, figures):
    """Squares of the errors, linear where they are far; priors stay square."""
    measured, priors = abs(errors[..., :-figures]), errors[..., -figures:]
    robust = np.where(measured < FAR, measured**2, 2 * FAR * measured - FAR**2)
    return robust.sum(-1) + (priors**2).sum(-1)


def minimised(fit, theta, steps):
    """The figures with the least cost, by Levenberg and Marquardt's method with five dampings tried in each step."""
    damping, figures, idle = 1.0, len(theta), 0
    for step in range(steps):
        errors, slopes = fit.slopes(theta)
        now = cost(errors, figures)
        weights = np.ones_like(errors)
        weights[:-figures] = np.minimum(1, FAR / np.maximum(abs(errors[:-figures]), 1e-9))
        matrix = slopes.T @ (slopes * weights[:, None])
        gradient = slopes.T @ (weights * errors)
        dampings = damping * np.array([0.1, 0.5, 2, 10, 100])
        changes = [np.linalg.solve(matrix + one * np.diag(np.diag(matrix)), gradient) for one in dampings]
        tried = theta - np.clip(changes, -0.7, 0.7)
        costs = cost(fit.errors(tried), figures)
        best = int(np.nanargmin(costs))
        print(f"step {step}: cost {now:.1f} -> {costs[best]:.1f}", file=sys.stderr)
        if costs[best] < now:
            theta, damping = tried[best], max(dampings[best], 1e-4)
        else:
            damping *= 30
        idle = idle + 1 if costs[best] > now - LEAST_GAIN else 0
        if idle == MOST_IDLE:
            break
    return theta


def write_machine(machine):
    """Writes the figures of the machine, and the size of the cache into its file."""
    with open(HERE / "machine.csv", "w") as file:
        file.write("# Written by fit.py; README.md explains the figures.\nfigure,value\n")
        for name in OF_MACHINE:
            file.write(f"{name},{getattr(machine, name)[0, 0]:.4g}\n")
    machine_file = HERE / "machine.toml"
    llc_mb = f"mb = {machine.llc_mb[0, 0]:.4g}\n"
    machine_file.write_text(re.sub(r"^mb = .*\n", llc_mb, machine_file.read_text(), flags=re.MULTILINE))


def read_table(name):
    with open(HERE / name) as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def read_machine():
    return np.log([float(row["value"]) for row in read_table("machine.csv")])


def read_programs():
    """The logarithms of all programs' figures, and of those of the probe's halves at the end."""
    rows = read_table("programs.csv")
    return np.log([[float(row[name]) for name in list(OF_PROGRAM)[:FILE_FIGURES]] for row in rows])


def write_latency(machine):
    """Writes the latency curve, denser where it bends."""
    a, b = machine.latency_a[0, 0], machine.latency_b[0, 0]
    loads = np.concatenate([np.arange(0, 0.5, 0.05), np.arange(0.5, 0.9, 0.02), np.arange(0.9, 0.971, 0.005)])
    points = "".join(f"    [{load:.3f}, {latency(load, a, b)[0]:.4f}],\n" for load in loads)
    (HERE / "latency.toml").write_text(
        "# Written by fit.py.\n"
        'schema = "cosched.latency/1"\n'
        'name = "spec2017-pairs"\n'
        f'title = "1 + a u^b / (1 - u) with a = {a:.4f} and b = {b:.4f}, up to u = {LAST_LOAD}"\n'
        'source = "fitted by fit.py to the curves of 19 programs and of a probe"\n\n'
        f"[[line]]\nreads = 1.0\npoints = [\n{points}]\n"
    )


def write_programs(file_name, names, programs, machine):
    """Writes the figures of programs."""
    core = put_programs(gangs(len(programs), 1), slice(None), 0, programs, machine.repeated(len(programs)))
    with open(HERE / file_name, "w", newline="") as file:
        file.write("# Written by fit.py; README.md explains the columns.\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["program", "threads", *list(OF_PROGRAM)[:FILE_FIGURES], "core_s"])
        for name, logarithms, core_s in zip(names, programs, core):
            threads = 3 if name.split(".")[-1].removesuffix("_s") in OPENMP else 1
            figures = [*np.exp(logarithms[:FILE_FIGURES]), core_s]
            table.writerow([name, threads, *(f"{figure:.4g}" for figure in figures)])


def write_shown(known):
    """Writes the numbers of the pairs that a fit has seen."""
    with open(HERE / "shown_pairs.csv", "w") as file:
        file.write("# Written by fit.py.\npair\n")
        file.writelines(f"{number}\n" for number in known.pair_numbers())


def fit_curves(known):
    fit = CurveFit(known)
    theta = minimised(fit, fit.start(), 100)
    machine, actors = fit.split(theta[None])
    write_machine(machine)
    curves, contention = fit.predict(theta[None])
    print(f"mean error of the curves {100 * abs(curves[0] - fit.curves).mean():.2f} %,", end=" ")
    print(f"of the probe beside programs {100 * abs(contention[0] - fit.contention).mean():.2f} %")
    write_latency(machine)
    write_programs("programs.csv", known.programs + HALVES, actors[0], machine)


def pair_fit(known, pairs):
    """The fit to these pairs, from the results of `curves`."""
    machine = Machine(read_machine()[None])
    return PairFit(machine, read_programs()[: len(known.programs)], pairs, known.alone_s)


def fit_pairs(known):
    fit = pair_fit(known, known.pairs())
    theta = minimised(fit, fit.median, 14)
    print(summary(fit.predictions(theta) - fit.measured))
    write_shown(known)
    write_programs("programs_pairs.csv", known.programs, theta.reshape(-1, FILE_FIGURES), fit.machine)


def validate_pairs(known, parts=10):
    """Predicts each part of the pairs, in both directions, from the others."""
    fit = pair_fit(known, known.pairs())
    pairs = [frozenset(pair) for pair in zip(fit.victims, fit.neighbours)]
    once = list(dict.fromkeys(pairs))
    part_of = dict(zip(once, np.random.default_rng(0).permutation(len(once)) % parts))
    part_of = np.array([part_of[pair] for pair in pairs])
    errors = []
    for part in range(parts):
        theta = minimised(fit.only(part_of != part), fit.median, 14)
        unseen = fit.only(part_of == part)
        errors.extend(unseen.predictions(theta) - unseen.measured)
    print(summary(errors))


def learn_pairs(known):
    """Predicts pairs that were never run from the curves and from so many runs of each program."""
    runs = [run for run in known.runs() if not any(TOO_SHORT in known.programs[one] for one in run[2])]
    for count in [5, 10, 20]:
        errors = []
        for seed in range(SEEDS):
            errors.extend(errors_of_unseen(known, runs, count, np.random.default_rng(seed)))
        print(f"{count} runs of each program: {summary(errors)}", flush=True)


def errors_of_unseen(known, runs, count, lots):
    """The errors of the pairs that are held back, if so many runs of each program are drawn from the others."""
    numbers = sorted({number for _, number, _, _ in runs})
    held_back = set(lots.permutation(numbers)[: len(numbers) // ONE_HELD_BACK_OF])
    shown = [(pair, value) for one, number, pair, value in runs if one in LEARN and number not in held_back]
    drawn = []
    for program in sorted({victim for (victim, _), _ in shown}):
        of_program = [run for run in shown if run[0][0] == program]
        drawn += [of_program[lot] for lot in lots.integers(len(of_program), size=count)]
    fit = pair_fit(known, log_means(drawn))
    theta = minimised(fit, fit.median, 14)
    unseen = [(pair, value) for one, number, pair, value in runs if one in JUDGE and number in held_back]
    judged = pair_fit(known, log_means(unseen))
    predicted = dict(zip(zip(judged.victims, judged.neighbours), judged.predictions(theta)))
    return [predicted[pair] - value for pair, value in unseen]


def summary(errors):
    errors = 100 * abs(np.array(errors))
    return f"error [%]: mean {errors.mean():.2f}, 90th percentile {np.quantile(errors, 0.9):.1f}, greatest {errors.max():.1f}"


if __name__ == "__main__":
    steps = {"curves": fit_curves, "pairs": fit_pairs, "validate": validate_pairs, "learn": learn_pairs}
    if len(sys.argv) != 3 or sys.argv[2] not in steps:
        sys.exit(__doc__)
    steps[sys.argv[2]](Measurements(sys.argv[1]))
