"""The measurements: tables of a folder, as arrays by program."""

import csv
from pathlib import Path

import numpy as np

# The campaigns at nominal clock: near replicates. The halves of the probe are known for the first only.
SETS = ["test", "cpu_freq", "conservative", "ondemand"]
BUBBLES_MB = np.arange(0, 113, 4.0)
HALVES = ["probe_random_ns", "probe_stream_ns"]


def log_means(measured):
    """The log mean of each pair's performances."""
    logs = {}
    for pair, performance in measured:
        logs.setdefault(pair, []).append(np.log(performance))
    return {pair: np.exp(np.mean(values)) for pair, values in sorted(logs.items())}


class Measurements:
    """What is known of each program alone, of the probe, and of the pairs."""

    def __init__(self, folder):
        self.folder = Path(folder)
        rows = self._rows("contentiousness_spec2017.csv")
        self.programs = sorted({row["program"] for row in rows})
        curves = self._by_bubble("sensitivity_spec2017.csv", "normalised_performance")
        self.curves = np.exp(np.mean([np.log(curves[one]) for one in SETS], axis=0))
        times = self._by_bubble("sensitivity_spec2017.csv", "time_s")
        self.alone_s = np.mean([times[one][:, 0] for one in SETS], axis=0)
        self._read_probe(rows)

    def _rows(self, name):
        with open(self.folder / name) as file:
            return list(csv.DictReader(line for line in file if not line.startswith("#")))

    def _by_bubble(self, name, column):
        """A column as an array of programs and bubbles, by set."""
        tables = {one: np.full((len(self.programs), len(BUBBLES_MB)), np.nan) for one in SETS}
        for row in self._rows(name):
            if row["set"] in tables:
                at = self.programs.index(row["program"]), int(row["bubble_mb"]) // 4
                tables[row["set"]][at] = float(row[column])
        return tables

    def _read_probe(self, contentiousness):
        """The speed of both halves of the probe beside each bubble and each program, relative to alone.

        The set `test` has the halves. The mean over all sets has less noise, so the halves are scaled to it.
        """
        beside_bubbles = self._rows("probe_spec2017.csv")

        def speeds(rows, column, one):
            ordered = sorted((row for row in rows if row["set"] == one), key=self._place)
            return self._alone_ns(beside_bubbles, column, one) / np.array([float(row[column]) for row in ordered])

        def halves(rows):
            whole = [speeds(rows, "probe_time_ns", one) for one in SETS]
            to_mean = np.exp(np.mean(np.log(whole), axis=0)) / whole[0]
            return np.array([speeds(rows, half, SETS[0]) * to_mean for half in HALVES])

        self.probe_beside_bubbles = halves(beside_bubbles)
        self.probe_beside_programs = halves(contentiousness)

    def _place(self, row):
        return float(row["bubble_mb"]) if "bubble_mb" in row else self.programs.index(row["program"])

    @staticmethod
    def _alone_ns(rows, column, one):
        (alone,) = [row for row in rows if row["set"] == one and float(row["bubble_mb"]) == 0]
        return float(alone[column])

    def runs(self):
        """Each run of a pair: its set, the number of the pair, the indices of program and neighbour, the performance."""
        runs = []
        for row in self._rows("pairs_spec2017.csv"):
            if row["set"] in SETS:
                pair = self.programs.index(row["program"]), self.programs.index(row["corunner"])
                runs.append((row["set"], int(row["pair"]), pair, float(row["normalised_performance"])))
        return runs

    def pairs(self):
        """The log mean over the sets of each pair's performance, by index of program and neighbour."""
        return log_means((pair, performance) for _, _, pair, performance in self.runs())

    def pair_numbers(self):
        """The numbers of all pairs."""
        return sorted({int(row["pair"]) for row in self._rows("pairs_spec2017.csv")})
