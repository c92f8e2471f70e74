"""COMPUTE page."""

from pages.parts import show
from pages.parts.inputs import Inputs
from pages.parts.registry import COMPUTE

inputs = Inputs(COMPUTE)
show.header(COMPUTE)
n = inputs.quantity("n", "Parameters", "70B", "count", low=1)
show.input_errors(inputs)
show.footer(inputs)
