"""Processes that take turns: what the measurements of networks and of the decoder share."""

import argparse
import json
import os
import subprocess
from pathlib import Path


class Worker:
    """A child that loads one program in one runtime, says a line of JSON about it, and answers lines with lines of JSON."""

    def __init__(self, python, script, runtime, threads, *arguments):
        """`facts` are what it said; None where the runtime can't run the program."""
        command = [python, script, "--child", runtime, str(threads), *map(str, arguments)]
        env = {**os.environ, "OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=env)
        line = self.process.stdout.readline()
        while line and not line.startswith("{"):  # what runtimes print
            line = self.process.stdout.readline()
        self.facts = json.loads(line) if line else None

    def ask(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def parse(doc, child, packages, seconds, names=None):
    """The arguments that both have, with `clock`; None in a child, which has run when this returns."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help=names)
    parser.add_argument("--official-python", metavar="PATH", help=f"an interpreter with {packages} installed")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=seconds, help=f"turns of a program go on for so long (default {seconds})")
    parser.add_argument("--cpu-time", action="store_true", help="time of the processor, not the clock: for a busy machine, one thread")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        runtime, threads, *rest = args.child
        child(runtime, int(threads), *rest)
        return None
    if args.folder is None:
        parser.error("a folder with programs is needed")
    args.clock = "cpu" if args.cpu_time else "wall"
    return args
