"""A policy in its own process: the tasks with the least progress run. Its argument is what goes wrong with it."""

import json
import sys
import time

WRONG = sys.argv[1] if len(sys.argv) > 1 else "nothing"


def say(answer):
    print(json.dumps(answer), flush=True)


def may_use(task, cpu):
    if task.get("allowed") is None:
        return True
    ranges = [part.split("-") for part in task["allowed"].split(",")]
    return any(int(ends[0]) <= cpu <= int(ends[-1]) for ends in ranges)


def binding(snapshot):
    """Every task that may be placed goes to the last CPU, which the kernel shares out."""
    mask = str(snapshot["machine"]["cpus"][-1]["id"])
    tasks = [task["id"] for task in snapshot["tasks"] if task["control"]["place"]]
    places = [{"place": {"task": task, "placement": {"shared": {"mask": mask}}}} for task in tasks]
    return {"changes": places, "next_wake": snapshot["now"] + 50_000_000}


def decision(snapshot):
    if "binds" in WRONG:
        return binding(snapshot)
    cpus = [cpu["id"] for cpu in snapshot["machine"]["cpus"]]
    tasks = sorted(snapshot["tasks"], key=lambda task: task["estimates"]["progress"]["value"])
    stops, places = [], []
    for task in tasks:
        own = [cpu for cpu in cpus if may_use(task, cpu)][: task["cpus"]]
        rest = [cpu for cpu in cpus if cpu not in own]
        if len(own) == task["cpus"]:
            placement = {"exclusive": {"cpus": ",".join(map(str, own))}}
            places.append({"place": {"task": task["id"], "placement": placement}})
            cpus = rest
        elif task["running"]:
            stops.append({"stop": {"task": task["id"]}})
    return {"changes": stops + places, "next_wake": snapshot["now"] + 50_000_000}


for line in sys.stdin:
    question = json.loads(line)
    if "describe" in question:
        say(
            {
                "name": "least-progress",
                "about": "the tasks with the least progress run",
                "needs": [] if "binds" in WRONG else ["freeze"],
                "wants": {"ipc": "progress is CPU time", "freeze": "nothing"} if "binds" in WRONG else {"ipc": "progress is CPU time"},
                "params": {"k": {"default": 2, "min": 1, "max": 9}, "mode": {"words": ["a", "b"]}},
                "answer_within_ns": 300_000_000,
            }
        )
    elif "snapshot" in question:
        seq = question["seq"]
        if WRONG == "crashes" and seq == 2:
            sys.exit(3)
        if WRONG == "hangs" and seq == 2:
            time.sleep(1)
        if WRONG == "floods" and seq == 2:
            while True:
                say({"seq": 0, "decision": {"changes": []}})
        if WRONG == "talks" and seq == 2:
            print("a line for a person", flush=True)
        answer = decision(question["snapshot"])
        if WRONG == "forgets" and seq >= 2:
            answer = {"changes": [], "next_wake": question["snapshot"]["now"] + 20_000_000}
            answer["changes"] = [{"stop": {"task": task["id"]}} for task in question["snapshot"]["tasks"] if task["running"]]
        if "confuses" in WRONG and seq == 2:
            answer["changes"] = [{"stop": {"task": 99}}]
        if WRONG == "misspells" and seq == 2:
            answer["wake_at"] = answer.pop("next_wake")
        say({"seq": seq, "decision": answer})
    elif "refused" in question:
        print(f"refused: {question['refused']}", file=sys.stderr)
