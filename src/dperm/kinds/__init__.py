"""Kinds of figures and tables that any paper may name: functions of its product."""
