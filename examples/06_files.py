"""The same on files, as the command line does it: write pools, calibrate on half of them, audit on the rest."""

import subprocess
import sys


def demur(*arguments):
    print("$ demur", *arguments)
    subprocess.run([sys.executable, "-m", "demur", *arguments], check=True)
    print()


demur("simulate", "-o", "pools.jsonl.gz", "--problems", "600", "--seed", "8")
demur("calibrate", "pools.jsonl.gz", "--score", "simulated", "--alpha", "0.1", "--hold-out", "0.5", "-o", "policy.json")
demur("audit", "pools.jsonl.gz", "--policy", "policy.json")
demur("decide", "pools.jsonl.gz", "--policy", "policy.json", "-o", "decisions.jsonl")
