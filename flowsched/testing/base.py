"""What all parts of the conformance suite share: the backend under test, its cost, what it must not leave."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, TypeAlias, TypeVar

import pytest

import flowsched as fs
from flowsched.backend import Backend, Feature, find_backends, load_backend
from flowsched.batch import count_rows
from flowsched.errors import BackendError, say_known
from flowsched.testing.kept import KeptSession
from flowsched.testing.workers import meeting as meetings
from flowsched.testing.workers import rows

Cut: TypeAlias = tuple[int, int | None]
"""Replicas and batch size of a node."""

_Tests = TypeVar("_Tests", bound=Callable[..., Any])
_KEPT: pytest.StashKey[KeptSession] = pytest.StashKey()
_PROBLEM: pytest.StashKey[str | None] = pytest.StashKey()
_WARM = fs.Graph("warm", ["x"], [fs.Node("a", ["x"])])


def needs(*features: Feature) -> Callable[[_Tests], _Tests]:
    """Mark a test, or all tests that a class adds, which a backend that lacks one of the features skips."""

    def mark(tests: _Tests) -> _Tests:
        own: Mapping[str, Any] = vars(tests) if isinstance(tests, type) else {"test_itself": tests}
        for name, test in own.items():
            if name.startswith("test_"):
                test.needs = (*getattr(test, "needs", ()), *features)
        return tests

    return mark


class Suite:
    """Base of all parts of the suite.

    Attributes:
        backend: name of the backend under test, or an instance of it, which all tests then share.
        options: options of the backend, where it is named.
        required: whether a backend that cannot be loaded or cannot work here fails the tests, not skips them.
        patience: options with which it waits, when a step is interrupted, for workers that end within 20 seconds.
        cuts: replicas and batch sizes that are tried where any must do; few and small where replicas are dear.
        widest: the most replicas of one node.
        examples: how many examples the tests by properties try, and how often those of unlucky moments try.
        at_once: seconds within which a failure must surface. Workers that are busy meanwhile stay so for 30.
        settle: seconds within which nothing of a session may be left running after a test.
        time_limit: seconds that one test may take, starting and ending replicas included.
    """

    backend: ClassVar[str | Backend]
    options: ClassVar[Mapping[str, Any]] = {}
    required: ClassVar[bool] = False
    patience: ClassVar[Mapping[str, Any]] = {}
    cuts: ClassVar[tuple[Cut, ...]] = ((1, None), (1, 1), (3, 2), (4, 5), (8, 1), (40, 3), (7, None))
    widest: ClassVar[int] = 100
    examples: ClassVar[int] = 40
    at_once: ClassVar[float] = 5.0
    settle: ClassVar[float] = 10.0
    time_limit: ClassVar[float] = 60.0

    def start(self, graph: fs.Graph, models: Mapping[str, Any], **settings: Any) -> fs.Session:
        """Start a session on the backend; ``settings`` are those of :func:`flowsched.start`."""
        return fs.start(graph, models, backend=self.backend, **{**self.options, **settings})

    def run_plan(
        self, plan: fs.Plan, models: Mapping[str, Any], inputs: Mapping[str, Any], **settings: Any
    ) -> fs.Outputs:
        """Run one step of a plan on replicas of its own."""
        return fs.run(plan, models, inputs, backend=self.backend, **{**self.options, **settings})

    def run(
        self, graph: fs.Graph, models: Mapping[str, Any], inputs: Mapping[str, Any], **settings: Any
    ) -> fs.Outputs:
        """Run one step of a graph on replicas of its own."""
        samples = count_rows(inputs[graph.sources[0]]) or 0
        return self.run_plan(fs.compile(graph, samples), models, inputs, **settings)

    def running(self) -> set[object]:
        """Return what runs now on behalf of sessions, each with a telling ``repr``.

        A backend that starts something else than threads and processes of ``multiprocessing`` adds it here.
        """
        return {*threading.enumerate(), *multiprocessing.active_children()}

    def in_a_program(self, more: Mapping[str, Any]) -> str:
        """Return Python that makes ``backend`` and ``options`` in a program of its own, for ``fs.start``.

        Args:
            more: options of the backend beside those of the suite.
        """
        if isinstance(self.backend, str):
            return f"backend, options = {self.backend!r}, {dict(self.options) | dict(more)!r}"
        kind = type(self.backend)
        made = f"Kind(**{dict(more)!r})"
        return f"from {kind.__module__} import {kind.__qualname__} as Kind\nbackend, options = {made}, {{}}"

    @classmethod
    def kind(cls) -> type[Backend]:
        """Return the class of the backend under test.

        Raises:
            BackendError: it cannot be loaded.
        """
        return load_backend(cls.backend) if isinstance(cls.backend, str) else type(cls.backend)

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Try each of the class's cuts where a test asks for a ``cut``."""
        if "cut" in metafunc.fixturenames:
            metafunc.parametrize("cut", cls.cuts, ids=lambda cut: f"{cut[0]} replicas, {cut[1]} rows")

    @pytest.fixture
    def kept(self, request: pytest.FixtureRequest) -> KeptSession:
        """The session that tests which differ only in the data share."""
        node = request.node.getparent(pytest.Class)
        if _KEPT not in node.stash:
            node.stash[_KEPT] = kept = KeptSession(self.start, self.running)
            node.addfinalizer(kept.close)
            self._warm_up()
        session: KeptSession = node.stash[_KEPT]
        return session

    @pytest.fixture
    def meeting(self, tmp_path: Path) -> Iterator[Path]:
        """A folder in which workers of any process meet: whoever waits there goes on when it is released."""
        yield tmp_path
        meetings.release(tmp_path)

    @pytest.fixture(autouse=True)
    def _only_what_it_can(self, request: pytest.FixtureRequest) -> None:
        """Skip what the backend declares to lack, and all of a backend that cannot work here."""
        stash = request.node.getparent(pytest.Class).stash
        if _PROBLEM not in stash:
            stash[_PROBLEM] = self._problem()
        if problem := stash[_PROBLEM]:
            (pytest.fail if self.required else pytest.skip)(problem)
        for feature in getattr(request.function, "needs", ()):
            if feature in (kind := self.kind()).lacks:
                pytest.skip(f"backend {kind.name!r} lacks {feature.value!r}")

    @pytest.fixture(autouse=True)
    def _nothing_is_left_running(self, _only_what_it_can: None, kept: KeptSession) -> Iterator[None]:
        """Every test, whatever it makes fail, must leave no thread or process behind."""
        before = self.running()
        yield
        until = time.monotonic() + self.settle
        while left := self.running() - before - kept.own:
            if time.monotonic() > until:
                pytest.fail(f"left running: {sorted(map(repr, left))}")
            time.sleep(0.005)

    @pytest.fixture(autouse=True)
    def _in_time(self, _nothing_is_left_running: None) -> Iterator[None]:
        """End a test that hangs, as a failure."""
        if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
            yield
            return

        def fail(_: int, __: FrameType | None) -> None:
            pytest.fail(f"it took longer than {self.time_limit} seconds")

        handler = signal.signal(signal.SIGALRM, fail)
        began = time.monotonic()
        outer, _ = signal.setitimer(signal.ITIMER_REAL, self.time_limit)
        yield
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, max(outer - (time.monotonic() - began), 0.001) if outer else 0.0)

    def _problem(self) -> str | None:
        """Return why the backend cannot work here, or None; a name that is no backend's fails the test."""
        known = [entry.name for entry in find_backends()]
        if isinstance(self.backend, str) and self.backend not in known:
            pytest.fail(f"there is no backend {self.backend!r}. {say_known(self.backend, known, 'backends')}")
        try:
            kind = self.kind()
        except BackendError as error:
            return str(error)
        problem = kind.problem()
        return problem and f"backend {kind.name!r} cannot work here: {problem}"

    def _warm_up(self) -> None:
        """Have the backend start what it starts once, so that it is not taken for what a session left."""
        try:
            self.run(_WARM, {"a": rows.pass_on}, {"x": [0]})
        except Exception:  # noqa: BLE001 - the tests will say
            return
