#!/usr/bin/env python3
"""Does every shipped file obey the JSON Schema of its kind (plans/schema/)?

First the schemas themselves are looked at, and tried on documents that are wrong: a schema that
takes everything would pass any file. With files as arguments: do those obey?
"""
import copy
import glob
import json
import os
import sys

try:
    from jsonschema import Draft202012Validator
except ImportError:
    print("python3-jsonschema is not installed: not checked")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ["model/shipped", "hw_profiles", "plans/shipped"]
TRACE = {
    "schema": "stepcast.trace/1", "kind": "predicted", "program": "sha256:" + 64 * "0",
    "plan": "p", "hardware": "h", "backend": None, "solo": False, "steps_played": 3,
    "period_us": 1590.0, "memory_mode": "no_added_waits", "streams": ["compute"],
    "anchor": "compute", "classes": [{"name": "all", "ranks": 2}],
    "columns": ["class", "operation", "rank", "kind", "stream", "label", "ready_us", "start_us",
                "transfer_us", "end_us", "bound", "p10_us", "p90_us"],
    "rows": [["all", 8, None, "all_reduce", "tensor_comm", "down / forward / piece 0", 250.0,
              250.0, 250.0, 370.0, "nvlink", None, None]],
}
RESULT = {
    "schema": "stepcast.result/1", "step_time_s": 0.5, "step_time_low_s": 0.4,
    "step_time_high_s": 0.6, "tokens_per_s": 1e5, "mfu": 0.4, "hfu": 0.4,
    "breakdown_s": {"gemm": 0.3}, "warnings": [], "exact": True,
    "memory": {"device": {"peak_bytes": 1, "used_bytes": 2}, "host": {"peak_bytes": 0}},
}
EXPLANATION = {
    "schema": "stepcast.explanation/1", "plan": "p", "hardware": "h", "step_time_s": 0.5,
    "settled": True, "sentence": "60 % of the step is gemm", "worst_wait": None,
    "critical_path": [{"name": "gemm", "waits": False, "seconds": 0.5, "by_sharing_s": 0}],
    "operations": [{"label": "up", "kind": "gemm", "times": 2, "seconds": 0.5}],
    "if_free": [{"name": "gemm", "what": "work", "step_time_s": 0.2, "gain_s": 0.3}],
    "if_10_percent_faster": [],
    "memory": {"device": {"peak_bytes": 1, "at": "up", "buffers": [
        {"name": "parameters", "for": "parameters", "buffers": 1, "bytes": 1}]}},
}
CONTENTION = {"others_share": 0.01, "steal_share": None, "spread": 0.02}
RUN = {
    "schema": "stepcast.result/1", "command": "run", "plan": "p", "step_time_s": 0.5,
    "tokens_per_s": 1e5, "steps": [0.5, 0.6], "losses": [5.5, None], "warnings": ["loud"],
    "memory": {"device": {"peak_bytes": 1}, "resident_bytes": 5}, "contention": CONTENTION,
}
COMPARE = {
    "schema": "stepcast.result/1", "command": "compare", "median_abs_error": 0.1,
    "p90_abs_error": 0.1, "max_abs_error": None, "regret": {"g": 1}, "coverage": None, "gaps": 1,
    "gaps_wrong": [{"group": "g", "faster": "p", "slower": "q", "measured_gap": 0.1,
                    "predicted_gap": -0.1}], "worst": [], "notes": [],
    "rows": [{"plan": "p", "group": "g", "transport": None, "predicted_s": 1, "measured_s": 1.1,
              "error": -0.1, "low_s": 0.9, "high_s": 1.2, "inside": True, "rounds": 5,
              "spread": 0.02, "joined": True}],
    "by_kind": {"gemm": {"count": 12, "predicted_s": 1, "measured_s": 1, "error": 0}},
}
SEARCH = {
    "schema": "stepcast.result/1", "command": "search", "considered": 9, "pruned": 2,
    "simulated": 7, "plans": [{"file": "1_p.json", "step_time_s": 0.5, "tokens_per_s": 9}],
}
CALIBRATE = {
    "schema": "stepcast.result/1", "command": "calibrate", "file": "p.json", "spread": 0.02,
    "median_abs_error": 0.03, "max_abs_error": 0.2, "contention": CONTENTION,
    "rows": [{"kind": "gemm", "shape": "64 x 64 x 64 nn", "ranks": 2, "cores": 1, "flops": 5e5,
              "bytes": 5e4, "measured_s": 1e-5, "fitted_s": 1.1e-5, "spread": 0.01}],
}
HARDWARE = {
    "schema": "stepcast.hw/1", "name": "h", "node": {"devices": 2},
    "measured_on": {"processor": "AMD EPYC", "cores": 2, "library": "plain"},
    "device": {"multiprocessors": 132, "memory_bandwidth_gb_per_s": 3350,
               "peak_tflop_per_s": {"bf16": 989}, "source": "data sheet"},
    "places": {"device": {"capacity_bytes": 1e9, "per": "device", "source": {"per": "known"}}},
    "links": {"nvlink": {"level": 1, "bandwidth_gb_per_s": 370, "latency_us": 3.4}},
    "collectives": {"levels": {"nvlink": {
        "all_reduce": {"latency_us": 25, "bus_bandwidth_gb_per_s": 476},
        "other": {"latency_us": 32, "bus_bandwidth_gb_per_s": 360}}}},
    "compute": {"gemm": {"peak_share": {"bf16": 0.66}, "fixed_us": 4},
                "memory_bound": {"bandwidth_share": 0.85, "fixed_us": 3},
                "adam": {"bandwidth_share": 0.85}},
    "issue": {"kernel_us": 4, "collective_us": 6.5, "copy_us": 4},
    "uncertainty": {"machine": 0.07, "neutral": 0.1, "kinds": {"gemm": 0.05}, "source": "known"},
}
# A good document and changes (path, value; None removes) that must each be refused.
WRONG = [
    ("stepcast.plan/1", "plans/shipped/gpt3-13b_1xdgx-h100_tp8_domino2.json", [
        ("zero.stage", 3), ("zero.stag", 1), ("dropout.hidden", 1.0), ("batch", None),
        ("batch.micro_batch", 1.5), ("mesh.order", ["data", "data", "tensor", "pipeline"]),
        ("offload.optimizer.place", "host"), ("domino.schedule", "none"), ("name", "a/b"),
        ("hardware.profile", None)]),
    ("stepcast.model/1", "model/shipped/tiny-gpt.json", [
        ("layers", 0), ("family", "bert"), ("layer", 2), ("tied_head", None)]),
    ("stepcast.hw/1", HARDWARE, [
        ("links.nvlink.bandwidth_gb_per_s", None), ("links.nvlink.bandwith_gb_per_s", 1),
        ("device.peak_tflop_per_s.fp5", 1), ("places.device.source", 3), ("node.devices", 0),
        ("measured_on.cores", 0),
        ("collectives.levels.nvlink.other", None), ("compute.adam.bandwidth_share", 300),
        ("uncertainty.machine", -1), ("uncertainty.kinds.gemm", "small"),
        ("uncertainty.kind", {})]),
    ("stepcast.trace/1", TRACE, [
        ("program", "sha256:12"), ("kind", "guessed"), ("rows", [["all", 8]]),
        ("rows", [TRACE["rows"][0] + [1]]), ("anchor", None), ("extra", 1), ("columns", []),
        ("others_share", 2), ("period_low_us", -1)]),
    ("stepcast.result/1", RESULT, [
        ("step_time_s", 0), ("step_time_low_s", 0), ("step_time_high_s", None),
        ("memory.device.used_bytes", None), ("exact", None), ("warnings", "")]),
    ("stepcast.result/1", RUN, [
        ("steps", []), ("contention", None), ("contention.others_share", 1.5), ("losses", None)]),
    ("stepcast.result/1", COMPARE, [
        ("rows", [{"plan": "p"}]), ("rows", [{**COMPARE["rows"][0], "inside": "yes"}]),
        ("regret", {"g": "low"}), ("coverage", 2), ("gaps_wrong", [{"group": "g"}]),
        ("by_kind.gemm.error", None), ("notes", "none")]),
    ("stepcast.result/1", SEARCH, [("plans", None), ("plans", [{"file": "1_p.json"}])]),
    ("stepcast.result/1", CALIBRATE, [("rows", [{"kind": "gemm"}]), ("contention", None)]),
    ("stepcast.explanation/1", EXPLANATION, [
        ("sentence", None), ("critical_path", [{"name": "gemm"}]), ("memory.tape", {}),
        ("memory.device.peak_bytes", None), ("if_free", [{**EXPLANATION["if_free"][0], "what": 1}]),
        ("operations", {}), ("further", 1)]),
]


def load(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return json.load(file)


def schemas():
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, "plans/schema/*.schema.json"))):
        schema = load(path)
        Draft202012Validator.check_schema(schema)
        found[schema["properties"]["schema"]["const"]] = Draft202012Validator(schema)
    return found


def changed(document, path, value):
    document = copy.deepcopy(document)
    *parents, key = path.split(".")
    at = document
    for parent in parents:
        at = at[parent]
    if value is None:
        del at[key]
    else:
        at[key] = value
    return document


def try_wrong(validators):
    complaints = []
    for kind, good, changes in WRONG:
        document = load(good) if isinstance(good, str) else good
        complaints += [f"{kind}: a good document is refused: {e.message}"
                       for e in validators[kind].iter_errors(document)]
        for path, value in changes:
            if validators[kind].is_valid(changed(document, path, value)):
                complaints.append(f"{kind}: {path} = {value} is accepted")
    return complaints


def check_shipped(validators):
    complaints, count = [], 0
    for folder in FOLDERS:
        for path in sorted(glob.glob(os.path.join(ROOT, folder, "*.json"))):
            name, document = os.path.relpath(path, ROOT), load(path)
            validator = validators.get(document.get("schema"))
            if validator is None:
                complaints.append(f"{name}: no schema file for {document.get('schema')}")
                continue
            count += 1
            complaints += [f"{name}: {error.json_path}: {error.message}"
                           for error in validator.iter_errors(document)]
    return complaints, count


def check_given(validators, paths):
    """Files of any place: what a command printed."""
    complaints = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        validator = validators.get(document.get("schema"))
        if validator is None:
            complaints.append(f"{path}: no schema file for {document.get('schema')}")
            continue
        complaints += [f"{path}: {error.json_path}: {error.message}"
                       for error in validator.iter_errors(document)]
    return complaints


def check_names():
    """The model and profile that a shipped plan names are shipped too."""
    complaints = []
    for path in sorted(glob.glob(os.path.join(ROOT, "plans/shipped/*.json"))):
        plan = load(path)
        for folder, name in (("model/shipped", plan["model"]),
                             ("hw_profiles", plan["hardware"]["profile"])):
            if not os.path.exists(os.path.join(ROOT, folder, f"{name}.json")):
                complaints.append(f"{os.path.relpath(path, ROOT)}: {folder}/{name}.json is missing")
    return complaints


def main():
    validators = schemas()
    if len(sys.argv) > 1:
        complaints = check_given(validators, sys.argv[1:])
        print("\n".join(complaints) if complaints else f"{len(sys.argv) - 1} files obey")
        return 1 if complaints else 0
    complaints = try_wrong(validators)
    shipped, count = check_shipped(validators)
    complaints += shipped + check_names()
    print("\n".join(complaints) if complaints else f"{count} files obey {len(validators)} schemas")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
