"""Does it pay to let Ray only call, and a gloo group of its actors move the rows? Both by hand, without flowsched.

Ray hands small objects over in its messages and large ones through shared memory that all actors of a machine map,
so that a fragment is written once however many read it; gloo copies it through a socket to each reader.
"""

from __future__ import annotations

from contextlib import ExitStack

from benchmarks.by_hand.ray_gloo import FRAGMENTS, GlooGroupProgram, ObjectStoreProgram
from benchmarks.figures import Figure, Section, say_step
from benchmarks.local_ray import local_ray
from benchmarks.timing import interleave, median_ratio

SIZES = {"16 KiB": 16 * 1024, "1 MiB": 1024**2, "16 MiB": 16 * 1024**2}
"""Bytes of a fragment."""
REPEATS = {"16 KiB": 10, "1 MiB": 10, "16 MiB": 3}
OBJECTS, GLOO, GLOO_BY_STEP = (
    "Ray calls and moves",
    "Ray calls, gloo moves",
    "Ray calls each actor once a step, gloo moves",
)


def measure(runs: int) -> Section:
    """Measure 3 times ``runs`` rounds of each size."""
    with local_ray():
        figures = [figure for name in SIZES for figure in _measure_size(name, 3 * runs)]
    how = (
        f"2 producers, 4 consumers, 4 batches, {FRAGMENTS} fragments of the given size a step, all actors on this "
        f"machine; rows do not come back to the driver. Medians of {3 * runs} rounds."
    )
    return Section("Ray for control and gloo between the actors for data, by hand", how, figures)


def _measure_size(name: str, rounds: int) -> list[Figure]:
    floats = SIZES[name] // 4
    with ExitStack() as stack:
        group = stack.enter_context(GlooGroupProgram(floats))
        sides = {
            OBJECTS: stack.enter_context(ObjectStoreProgram(floats)).run,
            GLOO: group.run,
            GLOO_BY_STEP: group.run_by_step,
        }
        for run in sides.values():
            for _ in range(3):
                run()
        timings = interleave(sides, rounds, REPEATS[name])
    return [
        *(say_step(f"{name}: {side}", own) for side, own in timings.items()),
        *(
            Figure(f"{name}: {side} over {OBJECTS}", f"{median_ratio(timings[side], timings[OBJECTS]):.2f} x")
            for side in (GLOO, GLOO_BY_STEP)
        ),
    ]
