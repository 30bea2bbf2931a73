# The rules are the stages of dperm.workflow.jobs, one job per (problem, solver).
#   dperm dpcd -j 2; dperm all -j 2          one paper; all papers, claims and report
#   dperm dpcd -j 2 --config scale=smoke     a small version under results/smoke
#   --config set="seed=7 paper.title='A b'"  Hydra overrides, quoted as in a shell
HERE = os.path.dirname(os.path.realpath(workflow.main_snakefile))  # or workflow/
sys.path.insert(0, os.path.join(HERE, "src"))  # in a checkout
import time
from dperm.cli import message_of
from dperm.config.locate import ConfigError, available
from dperm.workflow import manifest, warm
from dperm.workflow import workflow as helpers
from dperm.workflow.jobs import STAGES, compose
from dperm.storage.files import lock_results

BEGAN = time.time()
PAPERS = helpers.papers_of(sys.argv, available("paper"))
try:
    OVERRIDES = helpers.overrides(config, sys.argv)
    is_main = workflow.is_main_process
    JOBS = None if is_main else helpers.read_job_list(OVERRIDES)
    if JOBS is None:
        JOBS = compose(PAPERS, OVERRIDES, helpers.is_reported(sys.argv))
        JOBS.cores = helpers.cores(workflow)
    JOBS.costs = manifest.costs(JOBS.folder)
    PAPERS = JOBS.papers
    helpers.refuse_unmade(sys.argv, JOBS)
    if is_main:
        helpers.refuse_own_claims(sys.argv, PAPERS, OVERRIDES)
except ConfigError as error:
    sys.exit(str(error))
except Exception as error:  # of a module of one's own, which was read or imported
    sys.exit(message_of(error))

if is_main:
    helpers.backdate_data(JOBS)
shell.prefix(helpers.prefix(HERE))
RESULTS, LOGS = JOBS.below("results"), JOBS.below("logs")
TARGETS = JOBS.targets()


onstart:  # the kernel frees the lock, however this process ends
    from dperm.report import claims

    try:
        lock_results(".snakemake/dperm.lock")
        claims.refuse(PAPERS, OVERRIDES)
    except (RuntimeError, ConfigError) as error:
        raise WorkflowError(str(error))
    except Exception as error:
        raise WorkflowError(message_of(error))
    helpers.write_specs(JOBS, OVERRIDES)
    # With a limit on their rate every ended job leaves a timer that fires each second.
    workflow.scheduler.job_rate_limiter = None
    # Other machines and other environments start their jobs themselves.
    if not workflow.local_exec:
        helpers.write_job_list(JOBS, OVERRIDES)
    elif not workflow.deployment_settings.deployment_method:
        warm.start()


onsuccess:
    cores, is_whole = helpers.cores(workflow), helpers.is_whole(sys.argv)
    manifest.write(JOBS, cores, BEGAN, is_whole, warm.stop())
    print(helpers.answers(sys.argv, RESULTS, PAPERS))


onerror:  # a panel without data is a failure, and all else is made
    manifest.write(JOBS, helpers.cores(workflow), BEGAN, False, warm.stop())


localrules:
    complete,


# For software-deployment-method: apptainer; an image of profiles/Containerfile
container: os.environ.get("DPERM_CONTAINER")


wildcard_constraints:
    paper="|".join(PAPERS),
    dataset="[A-Za-z0-9_-]+",
    problem="[A-Za-z0-9_-]+",
    solver="[A-Za-z0-9_-]+",
    name="[A-Za-z0-9_-]+",
    part="solvers/[^/.]+|epsilon|tuning",


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


for stage in [stage for stage in STAGES if stage != "draw"]:

    rule:
        name:
            "audit_part" if stage == "audit" else stage  # audit is a target
        input:
            lambda names, stage=stage: JOBS.job(stage, *names).inputs,
        output:
            STAGES[stage].patterns(RESULTS),
        log:
            f"{LOGS}{stage}/{STAGES[stage].name or 'all'}.log",
        priority: lambda names, stage=stage: helpers.priority(JOBS, "/".join((stage, *names)))
        conda:
            "environment.yml"
        threads: lambda names, stage=stage: helpers.threads(JOBS, stage, *names)
        resources:  # of a cluster; --default-resources takes nothing from them
            mem_mb=lambda names, attempt: attempt * 3000,
            runtime=lambda names, attempt: attempt * 120,
        params:
            key=lambda names, stage=stage: helpers.key(JOBS, stage, *names),
            # A function of "threads", whose change triggers no rerun: the key has all
            # that counts, and scales share their data.
            command=lambda names, threads, stage=stage: (
                helpers.command(JOBS, OVERRIDES, threads, stage, *names)
            ),
        shell:
            "({params.command}) > {log} 2>&1"


for paper in PAPERS:
    for drawing in JOBS.of_paper(paper, "draw"):

        rule:
            name:
                "_".join(["draw", paper, *drawing.products[0].split("/")])
            input:
                drawing.inputs,
            output:
                [update(file) for file in drawing.outputs],
            log:
                f"{LOGS}draw/{paper}/{drawing.products[0]}.log",
            group:
                "draw"  # a job of a cluster, by the profile's group-components
            conda:
                "environment.yml"
            params:
                key=drawing.key,
                command=lambda names, threads, paper=paper, drawing=drawing: (
                    helpers.command(
                        JOBS, OVERRIDES, threads, "draw", paper, drawing.products[0]
                    )
                ),
            shell:
                "({params.command}) > {log} 2>&1"
