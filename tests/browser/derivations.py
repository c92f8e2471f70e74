"""What pages write of every formula, with one set of values and with several: a script for Streamlit."""

from __future__ import annotations

import streamlit as st

from pages.common.derivation import step_markdown
from tests.core.test_formula_katex import FORMULAS, shown

for _name in FORMULAS:
    for _step in shown(_name):
        st.markdown(step_markdown(_step))
