"""What is wrong with a shape that no transformer can have."""

from __future__ import annotations

from core.limits import limit
from core.messages import Message, message


class SpecError(ValueError):
    """A shape that no transformer can have.

    field, value, rule: what is wrong, what it was, and what it must be. The message names all three.
    example: a value that would do beside the others, None where no single one suggests itself.
    """

    def __init__(self, field: str, value: object, rule: Message, example: int | None = None) -> None:
        self.field = field
        self.value = value
        self.rule = rule
        self.example = example
        says = message("spec.error", field=field, value=str(value), rule=rule)
        super().__init__(says if example is None else message("spec.example", problem=says, example=str(example)))


def whole(owner: object, least: int, *names: str) -> None:
    """Every field named is a whole number from ``least`` to the cap on a model's dimensions."""
    most = limit("model_dimension")
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise SpecError(name, value, message("spec.whole"))
        if value < least:
            raise SpecError(name, value, message("spec.least", least=float(least)))
        if value > most:
            raise SpecError(name, value, message("spec.most", most=float(most)))
