"""Napkin's entry: the server when imported, the page when run.

``streamlit run app.py`` (or any ASGI server, as ``app:app``) imports this file once for ``app``; every rerun of a
visitor's session then runs it as a script. Everything a page shows lives in ``pages``.
"""

import streamlit as st

from pages.parts import show
from pages.parts.process import lifespan, prepare_process
from pages.parts.registry import GROUPS, PAGES
from pages.parts.theme import install_theme


def run() -> None:
    """One script run: page config, navigation, the page's header, then the page."""
    st.set_page_config(
        page_title="Napkin",
        page_icon="assets/static/icon.svg",
        layout="wide",
        initial_sidebar_state=248,
        menu_items={"About": "Napkin: resource accounting for LLM training in bits, bytes, FLOPs, days and dollars."},
    )
    page = st.navigation(
        {
            group: [
                st.Page(p.path, title=p.title, icon=p.icon, url_path=p.url_path, default=p.default) for p in members
            ]
            for group, members in GROUPS.items()
        },
        expanded=True,
    )
    install_theme()
    # The header goes out before the heavy imports of a cold start: a visitor reads while the server warms up.
    show.header(next(p for p in PAGES if p.url_path == page.url_path))
    prepare_process()
    page.run()


if __name__ == "__main__":
    run()
else:
    app = st.App(__file__, lifespan=lifespan)
