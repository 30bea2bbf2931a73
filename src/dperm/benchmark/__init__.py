"""The race of methods: ``dperm try`` and the arena."""
