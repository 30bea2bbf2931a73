"""The ``dperm`` command: what it lists, refuses and completes."""

import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from commands import dperm, python
from dperm import cli, extras
from dperm.cli import COMMANDS, main, name_of, papers
from dperm.config.locate import RESERVED, available

ROOT = Path(__file__).parents[2]
run = partial(dperm, cwd=ROOT)


def test_help_lists_stages_and_papers_each_with_a_line():
    text = run("--help").stdout
    stages = {name: command.help for name, command in COMMANDS.items()}
    for name, line in {**stages, **papers()}.items():
        assert line and re.search(
            f"\n  {re.escape(name)} +{re.escape(line)}\n", text
        )
    assert set(papers()) == set(available("paper"))


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("tnue problem=diabetes", "tune"),
        ("-n dpdc", "dpcd"),
        ("-n figures/smoke/dpcd/figur1.png", "figures/smoke/dpcd/figure1.png"),
        (
            "-n figures/dpcd/figure2.png --config scale=smoke",
            "figures/smoke/dpcd/figure2.png",
        ),
        (
            "-n dpcd data/prepared/diabete/meta.json --config scale=smoke",
            "data/prepared/diabetes/meta.json",
        ),
    ],
)
def test_an_unknown_word_is_refused(line, near):
    done = run(*line.split())
    assert done.returncode in (1, 2) and f"did you mean {near}?" in done.stderr
    # Snakemake first names its profile
    assert len(done.stderr.splitlines()) <= 2


REFUSED = {  # a command line to the end of its one line of refusal
    "--nosuch": "no option --nosuch (did you mean --touch?); --help lists what",
    "-V": "no option -V; --help lists what there is",
    "--verion": "no option --verion (did you mean --version?); --help lists what",
    "dpcd --nosuch": "no option --nosuch (did you mean",
    "dpcd --cores": "argument --cores/-c: expected one argument",
    "nosuch=1": "'nosuch=1': expected a command before it, or a target and --config",
    "dpcd seed=3": "'seed=3': expected a command before it, or a target and --config",
    "dpcd scale=smoke": "'scale=smoke': a run takes it as --config scale=smoke",
    "dpcd dpdc": "found 'dpdc' (did you mean dpcd?)",
    "dpcd --config sclae=smoke": "found 'sclae' (did you mean scale?)",
    "dpcd --config scale=smok": "found 'smok' (did you mean smoke?)",
    "dpcd -j 0": "-j: expected 1 or more, found 0",
    "dpdc": "no command or target of that name (did you mean dpcd?)",
    "tune --multirn": "no option --multirn (did you mean --multirun?)",
    "tune --cfg jbo": "argument --cfg/-c: invalid choice: 'jbo'",
    "tune sede=3": "found 'sede' (did you mean seed?)",
    "claims --jsno": "no option --jsno",
    "verify --partal": "no option --partal (did you mean --partial?)",
    "verify dpdc": "found 'dpdc' (did you mean dpcd?)",
    "verify --replay 2": "--replay: expected a number from 0 to 1, found 2",
    "verify --replay nan": "--replay: expected a number from 0 to 1, found nan",
    "verify --replay x": "--replay: expected a number from 0 to 1, found x",
    "audit mine:fit --epsiln 1": "no option --epsiln (did you mean --epsilon?)",
    "try --jsn": "no option --jsn (did you mean --json?)",
    "try mine.csv targt=y": "no key 'targt=y' (did you mean target=?)",
}


@pytest.mark.parametrize("line", REFUSED)
def test_a_word_that_is_no_option_key_or_target_is_refused_in_one_line(
    line, tmp_path
):
    done = dperm(*line.split(), cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert REFUSED[line] in done.stderr and done.stderr.startswith("dperm")
    assert len(done.stderr.splitlines()) == 1
    assert not [*tmp_path.iterdir()]  # nothing has started


def test_loops_that_are_not_compiled_are_refused_in_one_line():
    done = python("-m", "dperm", "fetch", NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "NUMBA_DISABLE_JIT is set: unset it" in done.stderr


def test_a_folder_that_was_removed_is_said(tmp_path):
    script = (
        f"mkdir gone; cd gone; rmdir ../gone; {sys.executable} -m dperm -n all"
    )
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 2 and done.stderr.count("dperm") == 1
    assert "the current folder was removed" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no such device")
@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_an_output_without_room_is_one_line(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dperm", *words], stdout=full,
            stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT,
        )  # fmt: skip
    assert done.returncode == 1
    assert "No space left" in done.stderr and done.stderr.count("\n") == 1


def test_a_stage_gets_its_keys():
    done = run("tune", "problem=diabetis")
    assert done.stderr.startswith("dperm: command line: problem: expected ")
    assert "did you mean diabetes?" in done.stderr and len(done.stderr) < 200


def test_help_of_a_stage_says_what_it_does():
    said = run("figure", "--help")
    assert said.returncode == 0 and COMMANDS["figure"].help in said.stdout
    assert "problem: " in said.stdout and "dpgcd" in said.stdout


@pytest.mark.parametrize(
    "words", [["tune", "--help"], ["-n", "data/fetched/diabetes/fetch.json"]]
)
def test_what_is_shown_to_a_reader_who_leaves_ends_in_silence(words, tmp_path):
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        [sys.executable, "-m", "dperm", *words], cwd=tmp_path, **how
    ) as shown:
        shown.stdout.close()
        told = shown.stderr.read()
    assert b"Error" not in told and b"Broken" not in told
    assert shown.returncode == -signal.SIGPIPE


HEAVY = {  # what takes long to import, by what does without it: 400 jobs start
    "import sys; sys.argv = ['dperm', '--help']; import dperm.cli; dperm.cli.main()":
        ("numpy", "omegaconf", "hydra", "snakemake", "pandas"),
    "import sys; sys.argv = ['dperm', 'verify', '--help']; import dperm.cli as c\n"
    "try: c.main()\nexcept SystemExit: pass":
        ("numpy", "omegaconf", "hydra", "snakemake", "pandas", "dperm.workflow.verify"),
    "import sys; sys.argv = ['dperm', 'solve', '--help']; import dperm.cli as c\n"
    "try: c.main()\nexcept SystemExit: pass":
        ("numba", "scipy", "pandas", "dperm.experiments"),
    "from dperm.config import config; config.read('paper', 'dpcd')":
        ("numba", "scipy", "pandas", "dperm.solvers.registry", "dperm.problems"),
    "from dperm.experiments import checks, inputs, products, stages":
        ("scipy.optimize", "scipy.stats", "scipy.signal", "dp_accounting", "sklearn",
         "matplotlib", "joblib", "requests", "hydra"),
}  # fmt: skip


@pytest.mark.parametrize("code", HEAVY)
def test_what_is_not_needed_is_not_imported(code):
    code += f"\nimport sys; print({{*sys.modules}} & {{*{HEAVY[code]}}})"
    done = python("-c", code)
    assert done.stdout.splitlines()[-1] == "set()", done.stderr


def test_a_refusal_under_hydra_is_one_line_and_its_flags_are_taken():
    done = run("figure", "-m", "paper=dpcd,dpgcd", "product=nothing")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(
        "dperm: product=nothing: conf"
    )
    shown = run("tune", "--cfg", "job", "paper=dpgcd", "seed=5").stdout
    assert "name: dpgcd" in shown and "seed: 5" in shown


def test_flags_keep_the_overrides_for_the_record(monkeypatch):
    seen = []
    monkeypatch.setattr(cli, "function_of", lambda command: seen.append)
    flags = ["paper=dpcd,dpgcd", "-m", "seed=3", "problem.privacy.epsilon=2"]
    cli.run_stage(COMMANDS["figure"], flags)
    names = ["dpcd", "dpgcd"]
    assert [config.paper.name for config in seen] == names
    assert {config.problem.privacy.epsilon for config in seen} == {2.0}
    rest = ["seed=3", "problem.privacy.epsilon=2"]
    assert [c.overrides for c in seen] == [
        [f"paper={name}", *rest] for name in names
    ]


@pytest.mark.parametrize(
    ("words", "is_added"),
    [
        (["dpcd"], True),
        (["dpcd", "-j", "2"], False),
        (["dpcd", "-c1"], False),
        (["all", "--profile", "profiles/slurm"], False),
    ],
)
def test_all_cores_are_taken_where_none_are_named(
    words, is_added, monkeypatch
):
    seen = []
    monkeypatch.setattr(sys, "argv", ["dperm", *words])
    monkeypatch.setenv("PATH", os.environ["PATH"])
    monkeypatch.setattr("snakemake.cli.main", lambda: seen.extend(sys.argv))
    main()
    assert ("--cores=all" in seen) == is_added and seen[-len(words) :] == words


@pytest.mark.parametrize("line", ["audit -j 2", "claims report --cores 2"])
def test_a_stage_with_a_number_of_cores_is_snakemake_s(line):
    assert name_of(line.split()) is None
    assert name_of(["audit", "solver=dp_cd"]) == "audit"


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINE = re.compile(r"^(?:\$ )?dperm( [^#\n]*?)?(?:  .*|#.*)?$", re.MULTILINE)


def documented():
    """Every command in a code block of the pages, without the remark behind it."""
    fence = re.compile(r"```(?:sh|console)?\n(.*?)```", re.DOTALL)
    for page in PAGES:
        for block in fence.findall(page.read_text()):
            for found in LINE.finditer(block):
                yield page, (found[1] or "").split()


def test_documented_commands_are_commands_with_their_own_options():
    lines = list(documented())
    assert len(lines) > 30
    for page, words in lines:
        name = name_of(words)
        if name and COMMANDS[name].form in (cli.SOLVES, cli.DRAWS):
            flags = [word for word in words[1:] if "=" not in word]
            assert set(flags) <= {"--help"}, (page.name, words)
        elif name is None:
            plain = [word for word in words if re.fullmatch(r"[a-z]\w*", word)]
            known = {*papers(), *COMMANDS, "all"}
            assert set(plain) <= known | EXAMPLES, (page.name, words)


EXAMPLES = {"mine", "finer", "tiny"}  # papers that a page has its reader write


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "dperm tune problem=diab",
            "problem=diabetes problem=diabetes_centred",
        ),
        ("dperm tune problem=log1 sol", "solver. solver="),
    ],
)
def test_hydra_completes_a_line(line, expected):
    assert (
        run("-sc", "query=bash", env={"COMP_LINE": line}).stdout.strip()
        == expected
    )
    assert "dperm" in run("-sc", "install=bash").stdout


# --- what Snakemake would not refuse --------------------------------------------------


@pytest.mark.parametrize(
    "line", ["-j -3", "-j-3", "--cores -1", "--jobs=-2", "-c -10", "-j x"]
)
def test_fewer_than_no_cores_are_refused(line):
    with pytest.raises(SystemExit, match=r"expected 1 or more, found [-x]"):
        cli.refuse_no_cores(["dpcd", *line.split()])
    cli.refuse_no_cores(["dpcd", "-j", "3", "-n"])


@pytest.mark.parametrize(
    "line", ["-j 0", "-j0", "--cores 0", "--jobs=0", "-c 00"]
)
def test_no_cores_are_refused(line):
    with pytest.raises(SystemExit, match="expected 1 or more, found 0"):
        cli.refuse_no_cores(["dpcd", *line.split()])
    cli.refuse_no_cores(["dpcd", *line.replace("0", "10").split(), "0"])


SMALL = "figures/smoke/dpcd/figure1.png"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (SMALL, f"{SMALL} --config scale=smoke"),
        (f"{SMALL} --config set=seed=7", f"{SMALL} --config scale=smoke set=seed=7"),
        (f"{SMALL} --config scale=smoke", f"{SMALL} --config scale=smoke"),
        ("figures/dpcd/figure1.png -j 2", "figures/dpcd/figure1.png -j 2"),
        ("dpcd --config scale=smoke", "dpcd --config scale=smoke"),
    ],
)  # fmt: skip
def test_the_scale_is_said_once(line, found):
    assert cli.at_scale(line.split()) == found.split()


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(
        SystemExit, match=r"file/below cannot be written \(Not a dir"
    ):
        cli.refuse_unwritable(
            ["dpcd", "--directory", str(tmp_path / "file/below")]
        )


def test_an_interrupted_stage_says_that_the_same_command_goes_on(
    monkeypatch, capsys
):
    def interrupted(config):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "function_of", lambda command: interrupted)
    with pytest.raises(SystemExit) as caught:
        cli.run_stage(COMMANDS["claims"], [])
    assert caught.value.code == 130
    assert capsys.readouterr().err == f"{cli.INTERRUPTED}\n"


def test_no_paper_has_the_name_of_a_command():
    assert {name.split()[0] for name in COMMANDS} <= RESERVED


def test_a_run_needs_no_library_of_the_report_alone(tmp_path):
    """It checks its claims before it starts; Jinja comes with Snakemake."""
    libraries = [name for name in extras.EXTRAS["report"] if name != "jinja2"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({libraries})); "
        "from dperm.report import claims; claims.refuse(['dpcd'], ['scale=smoke'])"
    )
    done = python("-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
