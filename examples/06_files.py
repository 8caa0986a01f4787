"""The same on files, as the command line does it: write pools, calibrate on half of them, audit on the rest."""

import subprocess
import sys


def quorate(*arguments):
    print("$ quorate", *arguments)
    subprocess.run([sys.executable, "-m", "quorate", *arguments], check=True)
    print()


quorate("simulate", "-o", "pools.jsonl.gz", "--problems", "600", "--seed", "8")
quorate(
    "calibrate", "pools.jsonl.gz", "--score", "simulated", "--alpha", "0.1", "--hold-out", "0.5", "-o", "policy.json"
)
quorate("evaluate", "pools.jsonl.gz", "--policy", "policy.json")
quorate("decide", "pools.jsonl.gz", "--policy", "policy.json", "-o", "decisions.jsonl")
