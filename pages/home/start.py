"""Home."""

import streamlit as st

from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import COMPUTE, HOME
from pages.parts.theme import TOKENS

inputs = Inputs(HOME)
show.header(HOME)
chips = show.slot()
n = inputs.quantity("n", "Parameters", "70B", "count", low=1)
c = inputs.choice("u", "Unit", ["GB", "GiB"], "GB", segmented=True)
s = st.slider("x", 0, 10, 3)
show.input_errors(inputs)
inputs.presets("Stories", {"A": {"n": "70B"}, "B": {"n": "7B"}}, into=chips)
show.answer(f"**{n:g}** parameters take **6.3 × 10²⁴ FLOP**, {c}", "a detail of **this**")
show.chart(
    {
        "data": [
            {
                "type": "bar",
                "x": ["a", "b"],
                "y": [1, 2],
                "marker": {"color": [TOKENS.parameters, TOKENS.gradients]},
            }
        ],
        "layout": {"height": 240},
    },
    alt="x",
    key="ch",
)
st.button("primary", type="primary")
st.page_link(COMPUTE.path, label="to compute", query_params={"c_n": "7B", "v": "1"})
show.footer(inputs)
