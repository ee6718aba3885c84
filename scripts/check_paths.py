#!/usr/bin/env python3
"""Does a path or a host of the machine that works on the tree stand in one of its files?

Nothing is listed here by name: the paths are those of this checkout, of the home folder and of the
folders such work is done in; the hosts are those that this machine fetches packages from.
"""
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
URL_HOST = re.compile(r"https?://(?:[^/\s@]*@)?([A-Za-z0-9.-]+\.[A-Za-z0-9-]+)")
PACKAGE_SETTINGS = ["/etc/apt/sources.list", "/etc/apt/sources.list.d/*", "/etc/apt/apt.conf.d/*",
                    "/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf"]
PACKAGE_VARIABLES = re.compile(r"(INDEX_URL|PROXY|REGISTRY|MIRROR)$", re.IGNORECASE)
# Hosts that documentation may well name for other reasons.
PUBLIC = {"github.com", "developer.download.nvidia.com"}
LARGEST = 2 << 20


def files():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        return [name for name in listed.stdout.decode().split("\0") if name]
    found = []
    for where, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(("build", ".git"))]
        found += [os.path.relpath(os.path.join(where, name), ROOT) for name in names]
    return found


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(LARGEST)
    except OSError:
        return ""


def hosts():
    text = "\n".join(value for key, value in os.environ.items() if PACKAGE_VARIABLES.search(key))
    for pattern in PACKAGE_SETTINGS:
        for path in glob.glob(os.path.expanduser(pattern)):
            text += "\n" + read(path)
    return {host for host in URL_HOST.findall(text) if len(host) > 4} - PUBLIC


def patterns():
    """Regular expressions over a line, each with what it finds."""
    found = []
    folders = {"work", "farm", "root", os.path.join("tmp", "bash_jobs")}
    for folder in (ROOT, os.path.expanduser("~")):
        if folder.count("/") > 1 or folder == "/root":
            folders.add(folder.strip("/"))
    for folder in sorted(folders):
        found.append((re.compile(r"(?:(?<![\w./$})-])|(?<=-[A-Z]))/" + re.escape(folder) + r"(?=[/.])"),
                      "a path of this machine"))
    for host in sorted(hosts()):
        found.append((re.compile(r"(?<![\w.-])" + re.escape(host)), "a package host"))
    return found


def self_test(rules):
    """A rule that finds nothing would pass any tree."""
    wrong = ["see /" + "work/notes", 'open("/' + 'root/.profile")', "-I/" + "tmp/bash_jobs.0/a"]
    right = ["exec/work/x", "the work/life split", "$HOME/root/x", "tests/" + "root.c"]

    def found(line):
        return any(pattern.search(line) for pattern, _ in rules)
    return ([f"not noticed: {line}" for line in wrong if not found(line)] +
            [f"wrongly refused: {line}" for line in right if found(line)])


def main():
    rules = patterns()
    faults = self_test(rules)
    for name in files():
        path = os.path.join(ROOT, name)
        if os.path.islink(path) or not os.path.isfile(path):
            continue
        for number, line in enumerate(read(path).splitlines(), 1):
            for pattern, what in rules:
                if pattern.search(line):
                    faults.append(f"{name}:{number}: {what}: {line.strip()[:100]}")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
