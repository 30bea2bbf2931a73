# The only wiring: generic stages, one job per (problem, solver).
#
#   snakemake -j 2 dpcd                      one paper
#   snakemake -j 32 all                      all papers
#   snakemake -j 2 dpcd --config scale=smoke a small version under results/smoke
#   --config set="seed=7 paper.fresh=20"     any Hydra overrides, for all jobs
import os
import time

from dperm.config import ConfigError, available
from dperm.experiments import sizing
from dperm.experiments.runtable import run_table
from dperm.experiments.store import refuse_second

PAPERS = available("paper")
SCALE = config.get("scale", "full")
SET = str(config.get("set", ""))
try:
    TABLE = run_table(PAPERS, [f"scale={SCALE}", *SET.split()])
except ConfigError as error:
    sys.exit(str(error))

RESULTS, FIGURES, LOGS = (TABLE.below(top) for top in ("results", "figures", "logs"))
os.environ.update(DPERM_STARTED=str(time.monotonic()))  # for the manifest
MEMORY, MINUTES = sizing.asked(TABLE)  # read by a profile for a cluster
RUN = f"scale={SCALE} {SET}"


def digest(stage):
    """Digest of what a job of that stage reads, by its wildcards."""
    return lambda names: TABLE.digests["/".join([stage, *names])]


def attempt(names):
    """Data that could not be had are asked for again in every run."""
    from dperm.experiments.dataset import unavailable

    return time.time() if unavailable(names.dataset) else 0


def shown(kind):
    """The results a figure or table is made of, by its wildcards."""
    return lambda names: TABLE.behind(names.paper, f"{kind}/{names.name}")


onstart:  # the kernel frees it, however this process ends
    try:
        refuse_second(".snakemake/dperm.lock")
    except RuntimeError as error:
        raise WorkflowError(str(error))


localrules:
    all,
    complete,


wildcard_constraints:
    paper="|".join(PAPERS),
    dataset="[A-Za-z0-9_-]+",
    problem="[A-Za-z0-9_-]+",
    solver="[A-Za-z0-9_-]+",
    name="[A-Za-z0-9_-]+",


rule all:
    input:
        expand(f"{RESULTS}{{paper}}/complete.txt", paper=PAPERS),
        [TABLE.products(paper) for paper in PAPERS],


for paper in PAPERS:  # `snakemake dpcd`

    rule:
        name:
            paper
        input:
            f"{RESULTS}{paper}/complete.txt",
            TABLE.products(paper),
        localrule: True


rule fetch:
    output:
        "data/fetched/{dataset}/fetch.json",
    log:
        f"{LOGS}fetch/{{dataset}}.log",
    conda:
        "environment.yml"
    params:
        digest=digest("fetch"),
        run=RUN,
        problem=lambda names: TABLE.problem_of[names.dataset],
        attempt=attempt,
    shell:
        "python -m dperm.fetch problem={params.problem} {params.run} 2>&1 | tee {log}"


rule prepare:
    input:
        lambda names: f"data/fetched/{TABLE.dataset_of[names.problem]}/fetch.json",
    output:
        "data/prepared/{problem}/meta.json",
    log:
        f"{LOGS}prepare/{{problem}}.log",
    conda:
        "environment.yml"
    params:
        digest=digest("prepare"),
        run=RUN,
    shell:
        "python -m dperm.prepare problem={wildcards.problem} {params.run} 2>&1 | tee {log}"


rule optimum:
    input:
        "data/prepared/{problem}/meta.json",
    output:
        "data/optimum/{problem}/optimum.json",
    log:
        f"{LOGS}optimum/{{problem}}.log",
    conda:
        "environment.yml"
    resources:
        mem_mb=MEMORY,
        runtime=MINUTES,
    params:
        digest=digest("optimum"),
        run=RUN,
    shell:
        "python -m dperm.optimum problem={wildcards.problem} {params.run} 2>&1 | tee {log}"


rule tune:
    input:
        "data/optimum/{problem}/optimum.json",
    output:
        f"{RESULTS}{{paper}}/{{problem}}/{{solver}}/tune.parquet",
    log:
        f"{LOGS}tune/{{paper}}/{{problem}}/{{solver}}.log",
    benchmark:
        f"{LOGS}tune/{{paper}}/{{problem}}/{{solver}}.tsv"
    conda:
        "environment.yml"
    threads: 2
    resources:
        mem_mb=MEMORY,
        runtime=MINUTES,
    params:
        digest=digest("tune"),
        run=RUN,
    shell:
        "python -m dperm.tune paper={wildcards.paper} problem={wildcards.problem}"
        " solver={wildcards.solver} workers={threads} {params.run} 2>&1 | tee {log}"


rule evaluate:
    input:
        f"{RESULTS}{{paper}}/{{problem}}/{{solver}}/tune.parquet",
    output:
        f"{RESULTS}{{paper}}/{{problem}}/{{solver}}/evaluate.parquet",
    log:
        f"{LOGS}evaluate/{{paper}}/{{problem}}/{{solver}}.log",
    benchmark:
        f"{LOGS}evaluate/{{paper}}/{{problem}}/{{solver}}.tsv"
    conda:
        "environment.yml"
    threads: workflow.cores  # timed: nothing runs beside it
    resources:
        mem_mb=MEMORY,
        runtime=MINUTES,
    params:
        digest=digest("evaluate"),
        run=RUN,
    shell:
        "python -m dperm.evaluate paper={wildcards.paper} problem={wildcards.problem}"
        " solver={wildcards.solver} {params.run} 2>&1 | tee {log}"


rule sweep:
    input:
        lambda names: TABLE.swept_from(names.paper, names.name),
    output:
        f"{RESULTS}{{paper}}/sweeps/{{name}}.parquet",
    log:
        f"{LOGS}sweep/{{paper}}/{{name}}.log",
    benchmark:
        f"{LOGS}sweep/{{paper}}/{{name}}.tsv"
    conda:
        "environment.yml"
    threads: 2
    params:
        digest=digest("sweeps"),
        run=RUN,
    shell:
        "python -m dperm.sweep paper={wildcards.paper} product={wildcards.name}"
        " workers={threads} {params.run} 2>&1 | tee {log}"


rule figure:
    input:
        shown("figures"),
    output:
        multiext(f"{FIGURES}{{paper}}/{{name}}", ".pdf", ".svg", ".png", ".csv"),
    log:
        f"{LOGS}figure/{{paper}}/{{name}}.log",
    conda:
        "environment.yml"
    params:
        digest=digest("figures"),
        run=RUN,
    shell:
        "python -m dperm.figure paper={wildcards.paper} product={wildcards.name}"
        " {params.run} 2>&1 | tee {log}"


rule table:
    input:
        shown("tables"),
    output:
        multiext(f"{RESULTS}{{paper}}/{{name}}", ".csv", ".md", ".tex"),
    log:
        f"{LOGS}table/{{paper}}/{{name}}.log",
    conda:
        "environment.yml"
    params:
        digest=digest("tables"),
        run=RUN,
    shell:
        "python -m dperm.table paper={wildcards.paper} product={wildcards.name}"
        " {params.run} 2>&1 | tee {log}"


rule complete:
    # Fails, after everything else was made, if a problem's data could not be had.
    input:
        lambda names: TABLE.products(names.paper),
    output:
        f"{RESULTS}{{paper}}/complete.txt",
    log:
        f"{LOGS}complete/{{paper}}.log",
    conda:
        "environment.yml"
    params:
        run=RUN,
    shell:
        "python -m dperm.complete paper={wildcards.paper} {params.run} 2>&1 | tee {log}"
