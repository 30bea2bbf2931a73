"""Kinds of figures and tables that any paper may name: functions of its product."""

from dperm.extras import require

require("pipeline", __name__)
