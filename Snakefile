# The only wiring: generic stages, one job per (problem, solver).
#   dperm dpcd -j 2; dperm all -j 2          one paper; all, claims and the report
#   dperm dpcd -j 2 --config scale=smoke     a small version under results/smoke
#   --config set="seed=7 paper.title='A b'"  Hydra overrides, quoted as in a shell
import os
import time

from dperm.locate import ConfigError, available
from dperm.pipeline import jobs, kept, sizing, targets
from dperm.store.locks import refuse_second

PAPERS = targets.asked(sys.argv, available("paper"))
try:
    TABLE = kept.run_table(PAPERS, OVERRIDES := jobs.overrides(config, sys.argv))
except ConfigError as error:
    sys.exit(str(error))

RUN = jobs.quoted(OVERRIDES)
RESULTS, FIGURES, LOGS = (TABLE.below(top) for top in ("results", "figures", "logs"))
os.environ.update(DPERM_STARTED=str(time.monotonic()))  # for the manifest
MEMORY, MINUTES = sizing.asked(TABLE)  # read by a profile for a cluster


def digest(stage):
    """Digest of what a job of that stage reads, by its wildcards."""
    return lambda names: TABLE.digests["/".join([stage, *names])]


onstart:  # the kernel frees it, however this process ends
    try:
        refuse_second(".snakemake/dperm.lock")
    except RuntimeError as error:
        raise WorkflowError(str(error))


wildcard_constraints:
    paper="|".join(PAPERS),
    dataset="[A-Za-z0-9_-]+",
    problem="[A-Za-z0-9_-]+",
    solver="[A-Za-z0-9_-]+",
    name="[A-Za-z0-9_-]+",


PRODUCTS = [TABLE.products(paper) for paper in PAPERS]
TARGETS = {
    paper: [f"{RESULTS}{paper}/complete.txt", *TABLE.products(paper)]
    for paper in PAPERS
}
TARGETS["audit"] = expand(f"{RESULTS}audit/{{part}}.csv", part=("epsilon", "controls"))
REPORTED = [f"{RESULTS}claims.csv", *TABLE.audited()]


rule all:
    input:
        [TARGETS[paper] for paper in PAPERS],
        f"{RESULTS}report/index.html",


for target in TARGETS:  # `snakemake dpcd`

    rule:
        name:
            target
        input:
            TARGETS[target],


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
        # Any will do: with "output", another of them is no reason to run again.
        problem=lambda names, output: TABLE.problem_of[names.dataset],
        attempt=lambda names: jobs.attempt(names.dataset),
    shell:
        "python -P -m dperm fetch problem={params.problem} {params.run} 2>&1 | tee {log}"


for stage, before, made in (
    (
        "prepare",
        lambda names: f"data/fetched/{TABLE.dataset_of[names.problem]}/fetch.json",
        "data/prepared/{problem}/meta.json",
    ),
    (
        "optimum",
        "data/prepared/{problem}/meta.json",
        "data/optimum/{problem}/optimum.json",
    ),
):

    rule:
        name:
            stage
        input:
            before,
        output:
            made,
        log:
            f"{LOGS}{stage}/{{problem}}.log",
        conda:
            "environment.yml"
        resources:
            mem_mb=MEMORY,
            runtime=MINUTES,
        params:
            digest=digest(stage),
            command=f"python -P -m dperm {stage}",
            run=RUN,
        shell:
            "{params.command} problem={wildcards.problem} {params.run} 2>&1 | tee {log}"


SOLVED = "{paper}/{problem}/{solver}"
for stage, before, made, cores in (
    ("tune", "data/optimum/{problem}/optimum.json", f"{SOLVED}/tune", 2),
    (
        "evaluate",
        f"{RESULTS}{SOLVED}/tune.parquet",
        f"{SOLVED}/evaluate",
        1024,  # all there are: it is timed, and runs alone on one of them
    ),
    (
        "sweep",
        lambda names: TABLE.swept_from(names.paper, names.name),
        "{paper}/sweeps/{name}",
        2,
    ),
):

    rule:
        name:
            stage
        input:
            before,
        output:
            f"{RESULTS}{made}.parquet",
        log:
            f"{LOGS}{stage}/{made}.log",
        benchmark:
            f"{LOGS}{stage}/{made}.tsv"
        conda:
            "environment.yml"
        threads: cores
        resources:
            mem_mb=MEMORY,
            runtime=MINUTES,
        params:
            digest=digest("sweeps" if stage == "sweep" else stage),
            command=f"python -P -m dperm {stage}",
            key=jobs.keys,
            workers=lambda names, threads, stage=stage: (
                "" if stage == "evaluate" else f"workers={threads}"
            ),
            run=RUN,
        shell:
            "{params.command} {params.key} {params.workers} {params.run}"
            " 2>&1 | tee {log}"


for kind, top, shown, kinds in (
    ("figure", FIGURES, ".png", [".pdf", ".svg", ".csv"]),
    ("table", RESULTS, ".md", [".csv", ".tex"]),
):

    rule:
        name:
            kind
        input:
            lambda names, kind=kind: TABLE.behind(names.paper, f"{kind}s/{names.name}"),
        output:
            multiext(f"{top}{{paper}}/{{name}}", *kinds),
            report(f"{top}{{paper}}/{{name}}{shown}", category="{paper}"),
        log:
            f"{LOGS}{kind}/{{paper}}/{{name}}.log",
        conda:
            "environment.yml"
        params:
            digest=digest(f"{kind}s"),
            command=f"python -P -m dperm {kind}",
            run=RUN,
        shell:
            "{params.command} paper={wildcards.paper}"
            " product={wildcards.name} {params.run} 2>&1 | tee {log}"


rule audit_part:
    input:
        lambda names: TABLE.behind_audit(names.part),
    output:
        f"{RESULTS}audit/{{part,solvers/[^/.]+|epsilon|controls|tuning}}.csv",
    log:
        f"{LOGS}audit/{{part}}.log",
    conda:
        "environment.yml"
    threads: lambda names: 8 if names.part == "controls" else 1
    params:
        digest=digest("audit"),
        key=lambda names: jobs.audit_key(names.part),
        run=RUN,
    shell:
        "python -P -m dperm audit {params.key} workers={threads} {params.run} 2>&1 | tee {log}"


rule complete:
    # Fails, after everything else was made, if a problem's data could not be had.
    input:
        lambda names: TABLE.products(names.paper),
    output:
        f"{RESULTS}{{paper}}/complete.txt",
    log:
        f"{LOGS}complete/{{paper}}.log",
    localrule: True
    conda:
        "environment.yml"
    params:
        run=RUN,
    shell:
        "python -P -m dperm complete paper={wildcards.paper} {params.run} 2>&1 | tee {log}"


for stage, made_of, made in (
    ("claims", PRODUCTS, ["claims.csv", "claims.md", "power.csv", "noticed.csv"]),
    ("report", REPORTED, ["report/index.html", "selection.csv"]),
):

    rule:
        name:
            stage
        input:
            made_of,
        output:
            [report(RESULTS + name, category="Report") for name in made],
        log:
            f"{LOGS}{stage}.log",
        conda:
            "environment.yml"
        params:
            digest=TABLE.digests["claims"],
            command=f"python -P -m dperm {stage}",
            run=RUN,
        shell:
            "{params.command} {params.run} 2>&1 | tee {log}"
