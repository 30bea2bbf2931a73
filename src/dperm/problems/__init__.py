"""Problems: losses, penalties, objectives and certified optima."""
