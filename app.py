"""Napkin's entry: eager imports, page config, navigation. Everything a page shows lives in ``pages``."""

import gc

# Imported before any page runs: concurrent cold starts that import these lazily find them half initialised.
import pandas  # noqa: F401
import plotly.graph_objects  # noqa: F401
import streamlit as st

from pages.parts.registry import GROUPS
from pages.parts.theme import install_theme

ICON = "assets/static/icon.svg"


@st.cache_resource
def freeze_imports() -> None:
    """Move everything loaded so far out of the collector's sight, once per process."""
    gc.collect()
    gc.freeze()


st.set_page_config(
    page_title="Napkin",
    page_icon=ICON,
    layout="wide",
    initial_sidebar_state=248,
    menu_items={"About": "Napkin: resource accounting for LLM training, in bits, bytes, FLOPs, days and dollars."},
)
freeze_imports()
page = st.navigation(
    {
        group: [st.Page(p.path, title=p.title, icon=p.icon, url_path=p.url_path, default=p.default) for p in members]
        for group, members in GROUPS.items()
    },
    expanded=True,
)
install_theme()
page.run()
