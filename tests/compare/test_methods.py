"""Where a method comes from."""

import os

from dperm.compare import contestants

YAML = """name: mine
label: Mine
algorithm: dp_gd
options: {steps: %d}
"""


def test_a_method_is_read_once_and_again_where_its_yaml_was_edited(
    tmp_path, monkeypatch
):
    file = tmp_path / "conf/solver/mine.yaml"
    file.parent.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    found = []
    for edit, steps in enumerate((10, 20)):
        file.write_text(YAML % steps)
        os.utime(file, ns=(edit, edit))
        found += [contestants.method("mine"), contestants.method("mine")]
    one, same, other, _ = found
    assert one is same and one.section.options["steps"] == 10
    assert other.section.options["steps"] == 20
