"""
Reproduce Figure 1 of DP-CD
===========================

``dperm figures/dpcd/figure1.png`` runs everything behind the figure, once the picture
is deleted. The data behind every figure are kept beside it, so that it can be drawn
again in a second.
"""

import matplotlib.pyplot as plt
import pandas as pd

from dperm.config.locate import home
from dperm.plotting import styles

data = pd.read_csv(home() / "figures/dpcd/figure1.csv")
data.head()

# %%
# Each panel is a data set whose columns have different scales. DP-CD takes a step of
# its own size in each coordinate, DP-SGD has one step size for all.

panels = data["panel"].unique()
size = (4 * len(panels), 3.6)
figure, axes = plt.subplots(1, len(panels), figsize=size, layout="constrained")
style = styles.styles_of(data["algorithm"])
for panel, panel_axes in zip(panels, axes.flat, strict=True):
    for name, curve in data[data["panel"] == panel].groupby("algorithm", sort=False):
        panel_axes.plot(
            curve["x"], curve["mean"], label=name, markersize=3, **style[name]
        )
    panel_axes.set(title=panel, yscale="log", xlabel="passes", ylabel="relative error")
lines = {
    line.get_label(): line for panel_axes in axes.flat for line in panel_axes.lines
}
figure.legend(handles=lines.values(), loc="outside lower center", ncols=3)
