"""Threads of a job, and the memory and time that it requests of a cluster.

All follow from the job's stage, the passes of its lanes and the size of its data set.
No row of any result depends on them. Requests are generous, and a profile with retries
requests more at every attempt. Snakemake's benchmark files, ``logs/<job>.tsv``, say
what a job took.
"""

from __future__ import annotations

import math

from dperm.pipeline.graph import STAGES, Graph

MOST = 16  # threads of a job; with more it would wait long for free cores
ALONE = 1024  # all cores: Snakemake limits this to those it has
APART = 8  # cores per run if several timed runs share a machine
SWEEP_THREADS = 4
# Roots of passes times entries that a thread takes in about 45 seconds. The time grows
# with the root, because the larger X is, the more lanes stop early.
ROOTS = 3.5e5

COPIES = 6  # of the arrays, while they are read, prepared and solved
BASE = 1000  # MB of an interpreter with its libraries, two workers and their lanes
NANOSECONDS = 4.0  # per lane and entry of X: about ten times the kernels' time
MINUTES = 10  # least time limit of a job
PASSES = 1000.0  # passes over the data that a job without lanes may take
SWEEP_MEMORY, SWEEP_MINUTES = 3000, 60  # several problems, or data made by the sweep


class JobResources:
    """Resources of all jobs of a build graph, by the jobs' names.

    Parameters
    ----------
    folder : str
        Folder of the data sets, whose sizes count once they are fetched.
    """

    def __init__(self, graph: Graph, folder: str = "data"):
        self.graph, self.folder = graph, folder

    def threads(self, job: str) -> int:
        """Number of threads of a job, if there are enough cores."""
        stage, _, _ = job.partition("/")
        if self.graph.jobs[job].alone:
            return ALONE
        if stage == "solve":
            entries = max(self._size(job) or (0, 0, 0))
            passes = self.graph.jobs[job].work or 0.0
            return min(MOST, max(1, math.ceil(math.sqrt(passes * entries) / ROOTS)))
        return SWEEP_THREADS if stage == "sweep" else 1

    def workers(self, job: str, threads: int) -> int:
        """Number of working threads of a job; a timed job uses only some, or one."""
        if not self.graph.jobs[job].alone:
            return threads
        return 1 if job.startswith("timing") else max(1, threads // APART)

    def megabytes(self, job: str, attempt: int = 1) -> int:
        """Memory in MB on a cluster; the least if a problem's data are missing."""
        size = self._size(job)
        if size is None:
            return attempt * SWEEP_MEMORY
        n, p, nnz = size
        return attempt * (BASE + COPIES * 8 * max(n + p, nnz) // 10**6)

    def minutes(self, job: str, attempt: int = 1) -> int:
        """Time limit in minutes on a cluster."""
        size = self._size(job)
        if size is None:
            return attempt * SWEEP_MINUTES
        work = self.graph.jobs[job].work
        passes = PASSES if work is None else work
        return attempt * (MINUTES + int(passes * max(size) * NANOSECONDS * 1e-9 / 60))

    def _size(self, job: str) -> tuple[int, int, int] | None:
        """n, p, stored entries; zeros if unknown, None for a job without a problem."""
        stage, *values = job.split("/")
        names = dict(zip(STAGES[stage].wildcards, values, strict=False))
        if "problem" not in names:
            return None
        # Imported here, as it is slow and a start that runs nothing does not need it.
        from dperm.core.experiment import schema
        from dperm.data.fetching import read_record

        dataset = self.graph.dataset_of[names["problem"]]
        record = read_record(dataset, schema.Data(dir=self.folder))
        if record is None or not record.available:
            return 0, 0, 0
        return record.n or 0, record.p or 0, record.nnz or 0
