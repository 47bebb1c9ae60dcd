"""DeepSpeed's CPU Adam with float32 parameters, gradients and moments, and `megaslide bench optimizer` after it, in
turns; prints the best rate of each over all rounds, in parameters a second, and what ours is of theirs.

    adamw_deepspeed.py PROGRAM PARAMETERS THREADS
"""

import json
import os
import subprocess
import sys
import time

import torch
from deepspeed.ops.adam import DeepSpeedCPUAdam

ROUNDS = 5
STEPS = 9


def theirs(optimizer, count):
    """Parameters a second of the best of a few steps."""
    best = 0.0
    for _ in range(STEPS):
        start = time.perf_counter()
        optimizer.step()
        best = max(best, count / (time.perf_counter() - start))
    return best


def ours(program, count, threads):
    """Rates by the name of the row, in parameters a second, and the shares of the sweep without arithmetic."""
    command = [program, "bench", "optimizer", "--json", "--threads", str(threads), "--parameters", str(count)]
    rates = {}
    for line in subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines():
        row = json.loads(line)
        if row["event"] == "row" and row["name"].startswith("adamw, "):
            rates[row["name"]] = (row["parameters_per_second"], row["of_peak"])
    return rates


def main():
    program, count, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    weights = torch.nn.Parameter(torch.randn(count) * 0.02)
    weights.grad = torch.randn(count) * 1e-3
    optimizer = DeepSpeedCPUAdam([weights], lr=1e-4, betas=(0.9, 0.99), weight_decay=0.01, adamw_mode=True)
    optimizer.step()  # allocates the moments
    reference, best, share = 0.0, {}, {}
    for turn in range(ROUNDS):
        rate = theirs(optimizer, count)
        reference = max(reference, rate)
        print(f"turn {turn + 1}: load {os.getloadavg()[0]:.1f}; deepspeed {rate * 1e-9:.2f}", end="")
        for name, (rate, of_peak) in ours(program, count, threads).items():
            best[name] = max(best.get(name, 0.0), rate)
            share[name] = max(share.get(name, 0.0), of_peak)
            print(f"; {name} {rate * 1e-9:.2f} ({100 * of_peak:.0f} % of its sweep)", end="")
        print(" G parameters/s", flush=True)
    print(f"best of {count / 1e6:.0f} M parameters, {threads} threads, in G parameters/s:")
    print(f"  deepspeed, float32 gradients, float32 master: {reference * 1e-9:.2f}")
    for name, rate in best.items():
        print(f"  {name}: {rate * 1e-9:.2f}, {rate / reference:.2f} times deepspeed's, "
              f"{100 * share[name]:.0f} % of its sweep")


if __name__ == "__main__":
    main()
