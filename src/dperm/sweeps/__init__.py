"""Sweeps, one file per paper: experiments that are no tuned grids.

A sweep's function is called once for every point of its grid and every replicate,
``function(config, point, seed, **options)``, and returns one dict of measures, or a
list of them (a trajectory). It knows neither files nor other points.
"""
