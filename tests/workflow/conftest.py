from staging import configured, data_dir  # noqa: F401 (fixtures)
