"""Napkin's entry: the server when imported, the page when run.

``streamlit run app.py`` (or any ASGI server, as ``app:app``) imports this file once for ``app``; every rerun of a
visitor's session then runs it as a script. Everything a page shows lives in ``pages``.
"""

from collections.abc import Mapping

import streamlit as st
from starlette.middleware import Middleware

from core.messages import message
from pages.common.registry import GROUP_TITLES, GROUPS, OLDER, PAGES, PageSpec, registered
from pages.common.server import sign_in
from pages.common.server.admission import Admission
from pages.common.server.pacing import Pacing
from pages.common.server.policy import Policy
from pages.common.server.process import lifespan, prepare_process
from pages.common.server.uploads import Uploads
from pages.common.theme import definitions, install_theme


def menu(pages: Mapping[str, st.Page], here: PageSpec) -> None:
    """The groups of pages in one line: that of this page with all of its pages, the others by their names alone."""
    with st.container(key="np-menu", horizontal=True, vertical_alignment="center", gap=None):
        for group, members in GROUPS.items():
            is_open = here in members or len(members) == 1
            if not is_open:
                st.page_link(pages[members[0].id], label=GROUP_TITLES[group], width="content")
            elif len(members) > 1:
                st.html(f'<span class="np-group">{GROUP_TITLES[group]}</span>', width="content")
            # The links of the others stay on the page, unseen: on the projector keys go through all of them.
            shown = "open" if is_open else "folded"
            with st.container(key=f"np-{shown}-{group}", horizontal=True, gap=None, width="content"):
                for p in members:
                    st.page_link(
                        pages[p.id], label=p.title, width="content"
                    )  # by its path it would find the file again
        from pages.common import projector  # what it imports takes a while on a cold start

        projector.switch()
        sign_in.entry()


def run() -> None:
    """One script run: navigation, page config, the page's header, then the page."""
    pages = registered()
    page = st.navigation(
        {group: [pages[p.id] for p in members] for group, members in GROUPS.items()}
        | {"older": [pages[name] for name in OLDER]},
        position="hidden",  # Streamlit's own menu puts <div> into <ul>, which screen readers stumble over
    )
    if page.url_path in OLDER:
        st.switch_page(pages[OLDER[page.url_path].id], query_params=st.query_params.to_dict())
    spec = next(p for p in PAGES if p.url_path == page.url_path)
    st.set_page_config(
        page_title=message("page.browser", page=spec.title),
        page_icon="/app/static/icon.svg",
        layout="wide",
        initial_sidebar_state=300,
        menu_items={"About": message("page.about")},
    )
    menu(pages, spec)
    install_theme()  # after the menu, whose switch says for which screen
    # Menu and header go out before the imports of a cold start and of the page: a visitor reads while the server warms
    # up.
    from pages.common import show

    if sign_in.shut_out():
        show.answer(message("server.sign_in_first"))
        return
    head = show.header(spec)
    definitions()
    prepare_process()
    if spec.plans:
        from pages.common import plan_sidebar

        plan_sidebar.draw(spec, head)
    page.run()


if __name__ == "__main__":
    run()
else:
    middleware = [Middleware(one) for one in (Policy, Admission, Pacing, Uploads)]
    app = st.App(__file__, lifespan=lifespan, middleware=middleware)
