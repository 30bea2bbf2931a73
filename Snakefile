# The rules are the stages of dperm.pipeline.jobs, one job per (problem, solver).
#   dperm dpcd -j 2; dperm all -j 2          one paper; all papers, claims and report
#   dperm dpcd -j 2 --config scale=smoke     a small version under results/smoke
#   --config set="seed=7 paper.title='A b'"  Hydra overrides, quoted as in a shell
HERE = os.path.dirname(os.path.realpath(workflow.main_snakefile))  # or workflow/
sys.path.insert(0, os.path.join(HERE, "src"))  # in a checkout
import shlex
from dperm.core.experiment.locate import ConfigError, available
from dperm.pipeline import workflow as helpers
from dperm.pipeline.jobs import STAGES, compose
from dperm.pipeline.resources import JobResources
from dperm.store.folders import refuse_second

PAPERS = helpers.papers_of(sys.argv, available("paper"))
try:
    OVERRIDES = helpers.overrides(config, sys.argv)
    JOBS = compose(PAPERS, OVERRIDES)
except ConfigError as error:
    sys.exit(str(error))

shell.prefix(helpers.prefix(HERE))
RUN = shlex.join(OVERRIDES)
RESULTS, LOGS = JOBS.below("results"), JOBS.below("logs")
TARGETS = JOBS.targets()
RESOURCES = JobResources(JOBS)


def inputs(stage):
    """Files that a job of that stage reads, by its wildcards."""
    return lambda names: JOBS.job(stage, *names).inputs


def digest(stage):
    """Digest of a job of that stage, by its wildcards."""
    return lambda names: JOBS.param(stage, *names)


def threads(stage):
    """Number of threads of a job of that stage, by its wildcards."""
    return lambda names: RESOURCES.threads("/".join([stage, *names]))


onstart:  # the kernel frees the lock, however this process ends
    from dperm.report import claims

    try:
        refuse_second(".snakemake/dperm.lock")
        claims.refuse(PAPERS, OVERRIDES)
    except (RuntimeError, ConfigError) as error:
        raise WorkflowError(str(error))
    helpers.begin(workflow)


onsuccess:
    print(helpers.answers(sys.argv, RESULTS, PAPERS))


wildcard_constraints:
    paper="|".join(PAPERS),
    dataset="[A-Za-z0-9_-]+",
    problem="[A-Za-z0-9_-]+",
    solver="[A-Za-z0-9_-]+",
    name="[A-Za-z0-9_-]+",
    part="solvers/[^/.]+|epsilon|controls|tuning",


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
        STAGES["fetch"].patterns(RESULTS),
    log:
        f"{LOGS}fetch/{{dataset}}.log",
    benchmark:
        f"{LOGS}fetch/{{dataset}}.tsv"
    priority: STAGES["fetch"].priority
    conda:
        "environment.yml"
    params:
        digest=digest("fetch"),
        run=RUN,
        # Any problem will do. As a function of "output", its change triggers no rerun.
        problem=lambda names, output: JOBS.problem_of(names.dataset),
        attempt=lambda names: helpers.attempt(names.dataset),
    shell:
        "python -P -m dperm fetch problem={params.problem} data.required=false"
        " {params.run} > {log} 2>&1"


for stage in ("prepare", "optimum", "solve", "sweep", "timing"):

    rule:
        name:
            stage
        input:
            inputs(stage),
        output:
            STAGES[stage].patterns(RESULTS),
        log:
            f"{LOGS}{stage}/{STAGES[stage].name}.log",
        benchmark:
            f"{LOGS}{stage}/{STAGES[stage].name}.tsv"
        priority: STAGES[stage].priority
        conda:
            "environment.yml"
        threads: threads(stage)
        resources:
            mem_mb=lambda names, attempt, stage=stage: (
                RESOURCES.megabytes("/".join([stage, *names]), attempt)
            ),
            runtime=lambda names, attempt, stage=stage: (
                RESOURCES.minutes("/".join([stage, *names]), attempt)
            ),
        params:
            digest=digest(stage),
            command=f"python -P -m dperm {stage}",
            key=helpers.keys,
            workers=lambda names, threads, stage=stage: (
                RESOURCES.workers("/".join([stage, *names]), threads)
            ),
            run=RUN,
        shell:
            "{params.command} {params.key} workers={params.workers} {params.run}"
            " > {log} 2>&1"


for paper in PAPERS:
    for drawing in JOBS.of_paper(paper, "draw"):

        rule:
            name:
                "_".join(["draw", paper, *[*drawing.products][0].split("/")])
            input:
                drawing.inputs,
            output:
                [update(report(f, category=paper)) for f in drawing.shown],
                [update(f) for f in drawing.outputs if f not in drawing.shown],
            log:
                f"{LOGS}draw/{paper}/{[*drawing.products][0]}.log",
            benchmark:
                f"{LOGS}draw/{paper}/{[*drawing.products][0]}.tsv"
            conda:
                "environment.yml"
            params:
                digest=drawing.key,
                drawn=shlex.quote(f"[{','.join(drawing.products)}]"),
                paper=paper,
                run=RUN,
            shell:
                "python -P -m dperm draw paper={params.paper}"
                " drawn={params.drawn} {params.run} > {log} 2>&1"


rule audit_part:
    input:
        inputs("audit"),
    output:
        STAGES["audit"].patterns(RESULTS),
    log:
        f"{LOGS}audit/{{part}}.log",
    benchmark:
        f"{LOGS}audit/{{part}}.tsv"
    conda:
        "environment.yml"
    threads: threads("audit")
    params:
        digest=digest("audit"),
        key=lambda names: helpers.audit_key(names.part),
        run=RUN,
    shell:
        "python -P -m dperm audit {params.key} workers={threads} {params.run} > {log} 2>&1"


rule complete:
    # Fails, after everything else was made, if a problem's data are unavailable.
    input:
        inputs("complete"),
    output:
        STAGES["complete"].patterns(RESULTS),
    log:
        f"{LOGS}complete/{{paper}}.log",
    localrule: True
    conda:
        "environment.yml"
    params:
        made=lambda names: f"made={JOBS.job('complete', names.paper).key}",
        run=RUN,
    shell:
        "python -P -m dperm complete paper={wildcards.paper} {params.made} {params.run} > {log} 2>&1"


for stage in ("claims", "report"):

    rule:
        name:
            stage
        input:
            inputs(stage),
        output:
            [report(f, category="Report") for f in STAGES[stage].patterns(RESULTS)],
        log:
            f"{LOGS}{stage}.log",
        benchmark:
            f"{LOGS}{stage}.tsv"
        conda:
            "environment.yml"
        params:
            digest=digest(stage),
            command=f"python -P -m dperm {stage}",
            run=RUN,
        shell:
            "{params.command} {params.run} > {log} 2>&1"
