# The only wiring: generic stages, one job per (problem, solver).
#   dperm dpcd -j 2; dperm all -j 2          one paper; all, claims and the report
#   dperm dpcd -j 2 --config scale=smoke     a small version under results/smoke
#   --config set="seed=7 paper.title='A b'"  Hydra overrides, quoted as in a shell
sys.path.insert(0, os.path.join(workflow.basedir, "src"))  # of a checkout
from dperm.locate import ConfigError, available
from dperm.pipeline import costs, jobs, kept, sizing, targets
from dperm.store.locks import refuse_second

PAPERS = targets.asked(sys.argv, available("paper"))
try:
    TABLE = kept.run_table(PAPERS, OVERRIDES := jobs.overrides(config, sys.argv))
except ConfigError as error:
    sys.exit(str(error))

shell.prefix(jobs.prefix(workflow.basedir))
RUN = jobs.quoted(OVERRIDES)
RESULTS, FIGURES, LOGS = (TABLE.below(top) for top in ("results", "figures", "logs"))
MEMORY, MINUTES = sizing.asked(TABLE)  # read by a profile for a cluster
COSTS = costs.Costs(TABLE)


def digest(stage):
    """Digest of what a job of that stage reads, by its wildcards."""
    return lambda names: TABLE.digests["/".join([stage, *names])]


def threads(stage):
    """How many threads a job of that stage is given, by its wildcards."""
    return lambda names: COSTS.threads("/".join([stage, *names]))


onstart:  # the kernel frees it, however this process ends
    try:
        refuse_second(".snakemake/dperm.lock")
    except RuntimeError as error:
        raise WorkflowError(str(error))
    jobs.begin(workflow)


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
    benchmark:
        f"{LOGS}fetch/{{dataset}}.tsv"
    priority: costs.PRIORITY["fetch"]
    conda:
        "environment.yml"
    params:
        digest=digest("fetch"),
        run=RUN,
        # Any will do: with "output", another of them is no reason to run again.
        problem=lambda names, output: TABLE.problem_of[names.dataset],
        attempt=lambda names: jobs.attempt(names.dataset),
    shell:
        "python -P -m dperm fetch problem={params.problem} data.required=false"
        " {params.run} 2>&1 | tee {log}"


SOLVED = "{paper}/{problem}/{solver}"
for stage, before, made, key in (
    (
        "prepare",
        lambda names: f"data/fetched/{TABLE.dataset_of[names.problem]}/fetch.json",
        ["data/prepared/{problem}/meta.json"],
        "{problem}",
    ),
    (
        "optimum",
        "data/prepared/{problem}/meta.json",
        ["data/optimum/{problem}/optimum.json"],
        "{problem}",
    ),
    (
        "solve",
        "data/optimum/{problem}/optimum.json",
        [f"{RESULTS}{SOLVED}/{name}.parquet" for name in ("tune", "evaluate")],
        SOLVED,
    ),
    (
        "sweep",
        lambda names: TABLE.swept_from(names.paper, names.name),
        [f"{RESULTS}{{paper}}/sweeps/{{name}}.parquet"],
        "{paper}/{name}",
    ),
    (
        "timing",  # alone, on one core of all there are
        lambda names: TABLE.clocked(names.paper),
        [f"{RESULTS}{{paper}}/timing.parquet"],
        "{paper}",
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
            f"{LOGS}{stage}/{key}.log",
        benchmark:
            f"{LOGS}{stage}/{key}.tsv"
        priority: costs.PRIORITY[stage]
        conda:
            "environment.yml"
        threads: threads(stage)
        resources:
            mem_mb=MEMORY,
            runtime=MINUTES,
        params:
            digest=digest({"solve": "evaluate", "sweep": "sweeps"}.get(stage, stage)),
            command=f"python -P -m dperm {stage}",
            key=jobs.keys,
            workers=lambda names, threads, stage=stage: (
                COSTS.workers("/".join([stage, *names]), threads)
            ),
            run=RUN,
        shell:
            "{params.command} {params.key} workers={params.workers} {params.run}"
            " 2>&1 | tee {log}"


for paper in PAPERS:
    for products in TABLE.batches(paper):

        rule:
            name:
                jobs.drawing(paper, products[0])
            input:
                TABLE.behind(paper, products[0]),
            output:
                [
                    update(report(f, category=paper))
                    for f in TABLE.shown(paper, products)
                ],
                [update(f) for f in TABLE.beside(paper, products)],
            log:
                f"{LOGS}draw/{paper}/{products[0]}.log",
            benchmark:
                f"{LOGS}draw/{paper}/{products[0]}.tsv"
            conda:
                "environment.yml"
            params:
                drawn=TABLE.asked(paper, products),
                paper=paper,
                run=RUN,
            shell:
                "python -P -m dperm draw paper={params.paper}"
                " drawn={params.drawn} {params.run} 2>&1 | tee {log}"


rule audit_part:
    input:
        lambda names: TABLE.behind_audit(names.part),
    output:
        f"{RESULTS}audit/{{part,solvers/[^/.]+|epsilon|controls|tuning}}.csv",
    log:
        f"{LOGS}audit/{{part}}.log",
    benchmark:
        f"{LOGS}audit/{{part}}.tsv"
    conda:
        "environment.yml"
    threads: threads("audit")
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
        made=lambda names: f"made={TABLE.made(names.paper)}",
        run=RUN,
    shell:
        "python -P -m dperm complete paper={wildcards.paper} {params.made} {params.run} 2>&1 | tee {log}"


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
        benchmark:
            f"{LOGS}{stage}.tsv"
        conda:
            "environment.yml"
        params:
            digest=TABLE.digests["claims"],
            command=f"python -P -m dperm {stage}",
            run=RUN,
        shell:
            "{params.command} {params.run} 2>&1 | tee {log}"
