# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How Sphinx builds the documentation: see tools/docs."""

import os

with open(os.path.join(os.environ["RDMA_EP_TOP"], "VERSION"), encoding="ascii") as file:
    release = file.read().strip()

project = "rdma_ep"
author = "The rdma_ep authors"
project_copyright = "the rdma_ep authors"
version = release
html_theme = "alabaster"
html_theme_options = {"page_width": "62em", "description": f"version {release}"}
nitpicky = True
# Types of other headers, which our structs and functions refer to.
nitpick_ignore_regex = [
    (r"c:.*", r"(__|ib_|rdma_).*|sockaddr.*|ibv_.*|size_t|u?int[0-9]+_t"),
]
