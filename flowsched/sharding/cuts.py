"""Where an epoch is cut into steps: what all ranks take at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from flowsched.sharding.declaration import Mode, Sharding, Tail


@dataclass(frozen=True)
class Cuts:
    """Steps of an epoch, counted in units: equal ones, and then what does not fill one. It takes no memory a step.

    Attributes:
        begin: the position in the epoch's order at which the first step begins.
        window: units of each of the equal steps: a full batch for each rank.
        full: how many of these there are.
        rest: units of each step that comes after them; at most two.
    """

    begin: int
    window: int
    full: int
    rest: tuple[int, ...]

    @property
    def steps(self) -> int:
        """How many steps there are."""
        return self.full + len(self.rest)

    def at(self, step: int) -> int:
        """Return the position at which a step begins, and the end for the number of steps."""
        return self.begin + min(step, self.full) * self.window + sum(self.rest[: max(0, step - self.full)])


def cut_steps(sharding: Sharding, seen: int) -> Cuts:
    """Return the steps of an epoch of which ``seen`` units have been seen already.

    Each step but the last takes a full batch for each rank, so that an epoch that stops after any step has seen
    a beginning of its order, however many ranks go on from there.
    """
    ranks, most = sharding.sharers, sharding.batch_size // sharding.group
    window = ranks * most
    full, rest = divmod(sharding.units - seen, window)
    if not rest or (sharding.mode == Mode.EVEN and sharding.tail == Tail.DROP):
        return Cuts(seen, window, full, ())
    if sharding.mode == Mode.EVEN and sharding.tail == Tail.PAD:
        return Cuts(seen, window, full, (window,))
    if sharding.mode == Mode.EVEN and rest < ranks and full and most > 1:
        # One unit for each rank is not left for the last step. The one before gives half of its own.
        kept = ranks * (most // 2)
        return Cuts(seen, window, full - 1, (kept, window - kept + rest))
    return Cuts(seen, window, full, (rest,))
