"""Tensor views: run an expression on x and see, step by step, what it does to the storage."""

from core.tensors import catalogue
from core.tensors.figures import storage_picture
from core.tensors.story import TABLE_HEADINGS, explanations, headline, table
from pages.parts import show
from pages.parts.components import component
from pages.parts.heavy import torch_ready
from pages.parts.registry import TENSORS
from pages.parts.tensors_inputs import PICTURE, TensorInputs, ask, story, traced
from pages.parts.tensors_memory import memory_walk, overlap
from pages.parts.tensors_named import named_axes

STORIES = {
    "Strides of a 4 × 4": story("x", "4, 4"),
    "Where is [1, 2]?": story("x[1, 2]", "4, 4"),
    "A column is a view": story("x[:, 1]"),
    "Write through a view": story("x.transpose(1, 0)[0, 0] = 100"),
    "Transpose, view: fails": story("x.t().view(2, 3)"),
    "contiguous() first: works": story("x.t().contiguous().view(2, 3)"),
    "What a copy costs": story("x.view(6, 4).t().reshape(3, 8)", "2, 3, 4", "float32"),
    "View without contiguity": story("x[:, ::2].view(-1)", "4, 6"),
    "Attention-head bug": story(
        "x.view(2, 3, 2, 4).transpose(1, 2).contiguous().transpose(1, 2).view(2, 3, 8)", "2, 3, 8"
    ),
}

inputs = TensorInputs(TENSORS)

chips = show.slot()
typed = ask(inputs)
errors = show.slot()
inputs.presets("Stories", STORIES, into=chips)
torch_ready()
run = traced(inputs, typed)
with errors:
    show.input_errors(inputs)

show.answer(*headline(run))
component("storage")(data=storage_picture(run), key=PICTURE, on_fix_change=inputs.take_fix)

with inputs.panel("named", "Named axes: what einops and einsum do to memory") as panel:
    if panel.open:
        named_axes(inputs, run)
with inputs.panel("lines", "Memory walk: cache lines of rows and of columns") as panel:
    if panel.open:
        memory_walk(inputs, run)
with inputs.panel("shared", "Overlap: elements that share memory, and writing in place") as panel:
    if panel.open:
        overlap(inputs, run)
with show.fold("The steps as a table", key="t:table", icon=":material/table:") as panel:
    if panel.open:
        show.small_table([show.Column(heading) for heading in TABLE_HEADINGS], table(run))
show.how(
    lambda: explanations(run),
    key="t:how",
    notes=(
        f"Every step ran on torch {run.torch_version}, on x = torch.arange of the start shape; shapes, strides and "
        "errors are torch’s own. View or copy is decided by asking whose storage a result uses.",
    ),
)
with show.fold("What can be typed", key="t:operations", icon=":material/keyboard:") as panel:
    if panel.open:
        rows = [(group, " · ".join(f"`{example}`" for example in examples)) for group, examples in catalogue().items()]
        show.small_table([show.Column("Memory"), show.Column("Operations")], rows)
show.footer(inputs)
