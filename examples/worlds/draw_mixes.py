"""Draw the mixes of both worlds with fixed seeds: python3 examples/worlds/draw_mixes.py

Mixes 31 to 36 repeat the kinds of 1 to 6 with other random seeds. They were drawn later, as were 7 to 30, which no page has
any more.
"""

import importlib.util
import random
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
KINDS = {
    "socket": {
        "compute": ["chess", "molecule", "render", "encode", "tensor"],
        "cache": ["events", "xmltree", "simplex", "speech", "network", "paths"],
        "stream": ["lattice", "gates", "waves", "fields"],
        "mixed": ["build", "compress"],
    },
    "numa": {
        "compute": ["fold", "raytrace", "search", "dense", "hash"],
        "cache": ["index", "route", "cluster", "align", "graph", "chain"],
        "stream": ["stencil", "triad", "spectral", "lattice"],
        "mixed": ["compile", "mine"],
    },
}
JOBS = {"socket": (18, 24), "numa": (24, 32)}  # as many as live at once by default, so that none starts late
SECONDS_ALONE = 15  # equal, so that the slowdowns of a batch can be compared: a short job that ends early is no unfairness
MIXES = [
    ("many streams", {"compute": 2, "cache": 2, "stream": 5, "mixed": 1}),
    ("many streams", {"compute": 2, "cache": 2, "stream": 5, "mixed": 1}),
    ("balanced", {"compute": 3, "cache": 3, "stream": 3, "mixed": 1}),
    ("balanced", {"compute": 3, "cache": 3, "stream": 3, "mixed": 1}),
    ("mostly compute", {"compute": 6, "cache": 2, "stream": 1, "mixed": 1}),
    ("mostly compute", {"compute": 6, "cache": 2, "stream": 1, "mixed": 1}),
]


def load(world):
    """The module of a world. By its path, since one has the name of a standard module."""
    spec = importlib.util.spec_from_file_location(f"{world}_world", HERE / f"{world}.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw(world, physics, number, about, weights):
    rng = random.Random(f"{world} {number}")
    count, jobs, seen = rng.randint(*JOBS[world]), [], {}
    while count > 0:
        program = rng.choice(KINDS[world][rng.choices(list(weights), weights.values())[0]])
        copies = min(count, 2 if rng.random() < 0.3 else 1)
        cycle = sum(length for _, length in physics.lengths(program, 1))
        instructions = round(SECONDS_ALONE * cycle / physics.solo_s(program, cycle, 1) / 1e8) * 1e8
        seen[program] = seen.get(program, 0) + 1
        lines = ["[[job]]", f'name = "{program}-{seen[program]}"'] + [f"copies = {copies}"] * (copies > 1)
        jobs.append("\n".join([*lines, f'given = {{ program = "{program}", instructions = {instructions:.4g} }}']))
        count -= copies
    head = f'# Drawn by draw_mixes.py for {world}.py: {about}.\nschema = "cosched.mix/1"'
    (HERE / "mixes" / f"{world}-{number}.toml").write_text("\n\n".join([head, *jobs]) + "\n")


def numbered():
    """The number, the kind and the weights of each mix."""
    for first in (1, 31):
        for number, (about, weights) in enumerate(MIXES, first):
            yield number, about, weights


if __name__ == "__main__":
    for world in KINDS:
        physics = load(world).World.physics
        for number, about, weights in numbered():
            draw(world, physics, number, about, weights)
