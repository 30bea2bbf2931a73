from small_files import folder, mine  # noqa: F401 (fixtures)
