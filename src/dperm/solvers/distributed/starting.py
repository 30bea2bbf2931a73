"""Engines by name: the nodes in this process, or on a cluster of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dperm.core.erm.problem import Problem
from dperm.solvers.distributed.engines import Dask, Start, local
from dperm.solvers.distributed.node import Public
from dperm.solvers.distributed.parts import in_files


class Cluster(Dask):
    """The Dask engine on a cluster of its own, or on the one Dask is configured for.

    ``DASK_SCHEDULER_ADDRESS`` names a running scheduler; without it one process a node
    is started here. Each node's columns are written to a file of their own, below
    Dask's ``temporary-directory``, which the workers must be able to read.
    """

    def __init__(self, problem: Problem, public: Public, seeds: Sequence[int]):
        import dask

        top = dask.config.get("temporary-directory", None)
        self.folder = tempfile.TemporaryDirectory(prefix="dperm-parts-", dir=top)
        self.cluster, client = _connected(len(seeds))
        try:
            parts = in_files(problem, len(seeds), Path(self.folder.name))
            super().__init__(parts, public, seeds, client)
        except BaseException:
            self._shut(client)
            raise

    def close(self) -> None:
        """Release the actors, then the cluster if it is ours, then the files."""
        super().close()
        self._shut(self.client)

    def _shut(self, client: Any) -> None:
        client.close()
        if self.cluster is not None:
            self.cluster.close()
        self.folder.cleanup()


def _connected(nodes: int) -> tuple[Any, Any]:
    """A cluster of our own (None if there is one already) and a client."""
    import dask
    from distributed import Client, LocalCluster

    address = dask.config.get("scheduler-address", None)
    if address:
        return None, Client(address)
    cluster = LocalCluster(
        n_workers=nodes, threads_per_worker=1, processes=True, dashboard_address=None
    )
    return cluster, Client(cluster)


ENGINES: dict[str, Start] = {"local": local, "dask": Cluster}
