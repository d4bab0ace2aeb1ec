"""Run many problems: `python -m tests.torture --count 500 --first 0 --jobs 2`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter

from .runner import run

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="how many problems")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, help="this problem alone")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--route", help="only the problems of this route")
    parser.add_argument("--penalty", help="only the problems of this penalty")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds after which a problem is killed")
    chosen = parser.parse_args()
    seeds = (
        [chosen.seed] if chosen.seed is not None else list(range(chosen.first, chosen.first + chosen.count))
    )
    start = time.perf_counter()
    outcomes = run(seeds, jobs=chosen.jobs, limit=chosen.limit, route=chosen.route, penalty=chosen.penalty)
    elapsed = time.perf_counter() - start

    kinds = Counter(kind for o in outcomes for kind in {claim.split(":")[0] for claim in o.false_claims})
    print("FALSE CLAIMS")
    for o in outcomes:
        if o.false_claims:
            print(f"  {o}")
            for claim in o.false_claims:
                print(f"      {claim}")
    waiting = [o for o in outcomes if not (o.converged or o.status == "ZERO_TOL")]
    print("NOT CONVERGED")
    for o in waiting:
        print(f"  {o}\n      {o.message}")
    print("SLOWEST")
    slowest = sorted(outcomes, key=lambda o: -o.seconds)
    for rank, o in enumerate(slowest):
        if rank < 10 or o.seconds > 2.0:
            print(f"  {o}")
    print(
        f"{len(outcomes)} problems in {elapsed:.0f} s (CPU: fits {sum(o.seconds for o in outcomes):.1f} s, "
        f"reference {sum(o.reference_seconds for o in outcomes):.1f} s); "
        f"{sum(bool(o.false_claims) for o in outcomes)} with false claims {dict(kinds)}; "
        f"{len(waiting)} not converged; {sum(o.seconds > 2.0 for o in outcomes)} slower than 2 s"
    )
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
