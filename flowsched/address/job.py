"""Jobs: a graph with the models and data that stand beside it.

A graph is at ``path/graph.yaml`` (``.yml``, ``.json``), at ``path/file.py`` (which holds ``graph``), at
``path/file.py:name`` or at ``package.module:name``. Models and data stand beside a graph in Python, as
``models`` and ``data``. A graph in YAML or JSON is read without importing anything.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

from flowsched.address.modules import first_on_path, open_module, read_attribute, split_address
from flowsched.errors import AddressError, say_known
from flowsched.graph import Graph
from flowsched.graph.files import GRAPH_SUFFIXES, load_graph


@dataclass(frozen=True)
class Job:
    """A graph and, where it is declared in Python, the models and the data that stand beside it.

    Attributes:
        graph: the graph.
        address: where it was found.
        folder: the folder whose modules the job may import; None for a graph file.
    """

    graph: Graph
    address: str
    folder: Path | None = None
    _module: ModuleType | None = field(default=None, repr=False)

    @cached_property
    def models(self) -> Mapping[str, Any] | None:
        """The models by node, read when first asked for; None where there are none.

        Raises:
            AddressError: reading them failed (the user's exception is the cause), or they are no mapping.
        """
        return self._beside("models", "node")

    @cached_property
    def data(self) -> Mapping[str, Any] | None:
        """The batches by source, read when first asked for; None where there are none.

        Raises:
            AddressError: as for ``models``.
        """
        return self._beside("data", "source")

    @contextmanager
    def importable(self) -> Iterator[None]:
        """Keep the job's folder first on ``sys.path``, for models that import when they are built."""
        with first_on_path(self.folder):
            yield

    def _beside(self, name: str, key: str) -> Mapping[str, Any] | None:
        if self._module is None:
            return None
        with self.importable():
            value = read_attribute(self._module, name, self.address, None)
        if value is not None and not isinstance(value, Mapping):
            got = type(value).__name__
            raise AddressError(f"{name} beside {self.address} is a {got}. Make it a dict, by {key}")
        return value


def load_job(address: str | os.PathLike[str]) -> Job:
    """Load the graph at an address.

    Raises:
        GraphError: a graph file that cannot be read, or a graph that cannot be.
        AddressError: the address leads to no graph; where the user's module failed, its exception is the cause.
    """
    address = os.fspath(address)
    if address.endswith(GRAPH_SUFFIXES):
        return Job(load_graph(address), address)
    target, name = split_address(address)
    module, folder = open_module(target, address)
    wanted = name or "graph"
    with first_on_path(folder):
        graph = read_attribute(module, wanted, address, None)
    if isinstance(graph, Graph):
        return Job(graph, address, folder, module)
    known = [key for key, value in vars(module).items() if isinstance(value, Graph)]
    has = "no" if graph is None else f"a {type(graph).__name__}, no Graph, called"
    mend = say_known(wanted, known, "graphs in it")
    example = f". Write {target}:{known[0]}" if known else ""
    raise AddressError(f"{target} has {has} {wanted!r}. {mend}{example}")
