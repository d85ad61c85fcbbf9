"""The parts of the suite that each wrong backend is run against; run by ``test_wrong_backends.py``."""

from __future__ import annotations

from flowsched.testing import (
    ColumnTests,
    ContextTests,
    EventTests,
    FailureTests,
    FeatureTests,
    InterruptTests,
    LossTests,
    MemoryTests,
    ObserverTests,
    PromiseTests,
    ResultTests,
    RowTests,
    SessionTests,
    SharedReplicaTests,
    SharingTests,
    Suite,
)
from tests.testing import wrong_backends as wrong


class Quick(Suite):
    """Small numbers, and little patience with what is known to fail."""

    cuts = ((1, None), (3, 2))
    widest = 8
    examples = 2
    at_once = 1.0
    time_limit = 30.0
    settle = 1.0


class TestWrong(
    Quick,
    ResultTests,
    SharedReplicaTests,
    PromiseTests,
    ContextTests,
    SessionTests,
    EventTests,
    MemoryTests,
    SharingTests,
    FailureTests,
):
    backend = wrong.Wrong()


class TestLosesTheTail(Quick, ResultTests):
    backend = wrong.LosesTheTail()


class TestPadsTheTail(Quick, ResultTests):
    backend = wrong.PadsTheTail()


class TestSwapsTwoRows(Quick, ResultTests):
    backend = wrong.SwapsTwoRows()


class TestCallsTwice(Quick, PromiseTests):
    backend = wrong.CallsTwice()


class TestIgnoresAfter(Quick, ResultTests):
    backend = wrong.IgnoresAfter()


class TestHasBarriers(Quick, PromiseTests):
    backend = wrong.HasBarriers()


class TestUsesOneReplica(Quick, PromiseTests, SharedReplicaTests):
    backend = wrong.UsesOneReplica()


class TestStartsInReverse(Quick, PromiseTests):
    backend = wrong.StartsInReverse()


class TestMisaligns(Quick, PromiseTests):
    backend = wrong.Misaligns()


class TestBuildsForEachStep(Quick, SessionTests):
    backend = wrong.BuildsForEachStep()


class TestFailsLate(Quick, FailureTests):
    backend = wrong.FailsLate()


class TestHidesTheCause(Quick, FailureTests):
    backend = wrong.HidesTheCause()


class TestDropsTheTraceback(Quick, FailureTests):
    backend = wrong.DropsTheTraceback()


class TestMasksTheFailure(Quick, FailureTests):
    backend = wrong.MasksTheFailure()


class TestDropsCancellation(Quick, FailureTests):
    backend = wrong.DropsCancellation()


class TestIgnoresTheLimit(Quick, MemoryTests):
    backend = wrong.IgnoresTheLimit()


class TestLeavesAThread(Quick, SharedReplicaTests):
    backend = wrong.LeavesAThread()


class TestCountsRowsWrongly(Quick, EventTests):
    backend = wrong.CountsRowsWrongly()


class TestForgetsToTell(Quick, EventTests):
    backend = wrong.ForgetsToTell()


class TestLetsWorkersWrite(Quick, SharingTests):
    backend = wrong.LetsWorkersWrite()


class TestWidensBfloat16(Quick, ColumnTests):
    backend = wrong.WidensBfloat16()


class TestForgetsTheStep(Quick, ContextTests):
    backend = wrong.ForgetsTheStep()


class TestSwallowsCtrlC(Quick, InterruptTests):
    backend = wrong.SwallowsCtrlC()


class TestMasksALoss(Quick, LossTests):
    backend = wrong.MasksALoss()
    at_once = 10.0


class TestLacksEverything(
    Quick, RowTests, EventTests, ObserverTests, LossTests, FeatureTests, FailureTests, MemoryTests
):
    backend = wrong.LacksEverything()
