#!/usr/bin/env python3
"""Runs one .case file: a session at the shell, written as in a manual page.

    # What this shows.
    $ stepcast sim plan.json --set zero.stage=4
    plan.json: zero.stage: found the number 4, expected ...
    # exit 3

"$ " starts a command (bash); "> " on the next lines continues it. What follows is its output,
standard output first, then standard error. "..." inside a line stands for any text, a line that is
only "..." for any number of lines. "# exit N" is the exit status, 0 when left out. Other lines that
start with "#" are comments; "\\#", "\\$" and "\\..." at the start of a line stand for the character
itself. An empty line right before a command, a comment or the end does not count.

Each file runs in a new, empty folder, which is removed afterwards; its commands share it. There,
`stepcast` is the program under test and $SRC the source folder.
"# needs mpi" skips the file (exit 77) where the build is without it.
"""
import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
COMMAND_SECONDS = 100


class Step:
    def __init__(self, line, command):
        self.line, self.command = line, command
        self.expected, self.status = [], 0


def parse(text):
    """Steps of a case file and what it needs; ValueError names the line of a mistake."""
    steps, needs = [], set()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("$ "):
            steps.append(Step(number, line[2:]))
        elif line.startswith("> ") and steps and not steps[-1].expected:
            steps[-1].command += "\n" + line[2:]
        elif re.fullmatch(r"# exit \d+", line):
            if not steps:
                raise ValueError(f"line {number}: an exit status before any command")
            steps[-1].status = int(line.split()[2])
        elif line.startswith("# needs "):
            needs.update(line.split()[2:])
        elif line.startswith("#"):
            continue
        elif steps:
            steps[-1].expected.append(line)
        elif line.strip():
            raise ValueError(f"line {number}: output before any command")
    if not steps:
        raise ValueError("no command in the file")
    for step in steps:
        while step.expected and not step.expected[-1].strip():
            step.expected.pop()
    return steps, needs


def line_matches(pattern, line):
    if pattern.startswith(("\\#", "\\$", "\\...")):
        pattern = pattern[1:]
    parts = [re.escape(part) for part in pattern.rstrip().split("...")]
    return re.fullmatch(".*".join(parts), line.rstrip()) is not None


def output_matches(expected, lines):
    """Does the whole output match? Row by row: which numbers of lines each prefix can stand for."""
    reachable = {0}
    for pattern in expected:
        if pattern.strip() == "...":
            reachable = set(range(min(reachable), len(lines) + 1))
        else:
            reachable = {at + 1 for at in reachable
                         if at < len(lines) and line_matches(pattern, lines[at])}
        if not reachable:
            return False
    return len(lines) in reachable


def run(step, folder, environment):
    """The output as lines (standard output, then standard error) and the exit status."""
    done = subprocess.run(["bash", "-c", step.command], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_SECONDS,
                          check=False)
    lines = []
    for stream in (done.stdout, done.stderr):
        lines += stream.decode("utf-8", "replace").splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    # bash gives 128 + signal for what it ran, Python a negative number for bash itself.
    return lines, done.returncode if done.returncode >= 0 else 128 - done.returncode


def complaint(case, step, lines, status):
    text = [f"{case}:{step.line}: $ {step.command}"]
    if status != step.status:
        text.append(f"exit status: found {status}, expected {step.status}")
    text += difflib.unified_diff(step.expected, lines, "expected", "found", lineterm="", n=2)
    return "\n".join(text)


def run_case(case, binary, source, have):
    with open(case, encoding="utf-8") as file:
        steps, needs = parse(file.read())
    missing = needs - have
    if missing:
        print(f"{case}: skipped, the build is without {', '.join(sorted(missing))}")
        return SKIPPED
    folder = tempfile.mkdtemp(prefix="stepcast-case-")
    environment = dict(os.environ, SRC=source, LC_ALL="C", HOME=folder,
                       PATH=os.path.dirname(binary) + os.pathsep + os.environ.get("PATH", ""))
    environment.pop("STEPCAST_DATA", None)
    try:
        for step in steps:
            try:
                lines, status = run(step, folder, environment)
            except subprocess.TimeoutExpired:
                print(f"{case}:{step.line}: $ {step.command}\nnot done in {COMMAND_SECONDS} s")
                return 1
            if status != step.status or not output_matches(step.expected, lines):
                print(complaint(case, step, lines, status))
                return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description="Run one command-line case.")
    parser.add_argument("--binary", required=True, help="the stepcast program")
    parser.add_argument("--source", required=True, help="the source folder, $SRC in a case")
    parser.add_argument("--have", default="", help="parts in the build, comma-separated")
    parser.add_argument("case")
    arguments = parser.parse_args()
    have = {part for part in arguments.have.split(",") if part}
    try:
        return run_case(arguments.case, os.path.abspath(arguments.binary), arguments.source, have)
    except ValueError as error:
        print(f"{arguments.case}: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
