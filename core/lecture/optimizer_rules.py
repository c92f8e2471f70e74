"""Update rules of SGD, AdaGrad, RMSProp, Adam, and AdamW for one weight, as in torch.optim."""

from __future__ import annotations

from core.formula import Source, Symbol, formula


def _torch(name: str) -> Source:
    return Source(
        "PyTorch, torch.optim", name, f"https://docs.pytorch.org/docs/stable/generated/torch.optim.{name}.html"
    )


_ADAM = Source("Kingma and Ba 2014, Adam", "algorithm 1", "https://arxiv.org/abs/1412.6980")
_ADAMW = Source("Loshchilov and Hutter 2017, Decoupled Weight Decay", "algorithm 2", "https://arxiv.org/abs/1711.05101")
_ADAGRAD = Source(
    "Duchi, Hazan and Singer 2011, Adaptive Subgradient Methods",
    "JMLR 12, section 1.1",
    "https://jmlr.org/papers/v12/duchi11a.html",
)
_RMSPROP = Source(
    "Hinton, Srivastava and Swersky 2012, Neural Networks for Machine Learning",
    "lecture 6e",
    "https://www.cs.toronto.edu/~tijmen/csc321/slides/lecture_slides_lec6.pdf",
)


def _number(latex: str, meaning: str) -> Symbol:
    return Symbol(latex, meaning, "number")


_NEXT = _number(r"\theta_t", "the weight after the step")
_WEIGHT = _number(r"\theta", "the weight before")
_SLOPE = _number("g_t", "its gradient")
_RATE = _number(r"\eta", "learning rate")
_BETA = _number(r"\beta", "share of the past that is kept")
_BETA_1 = _number(r"\beta_1", "share of the past that is kept")
_BETA_2 = _number(r"\beta_2", "share of the past that is kept")
_STEP = _number("t", "number of the step")
_MEAN = _number("m_t", "running mean of the gradient")
_SQUARE = _number("v_t", "running mean of its square")


@formula(
    r"\v{weight} \cdot (1 - \v{rate} \cdot \v{decay})",
    result=_number(r"\theta'", "the weight, decayed"),
    symbols={
        "weight": _number(r"\theta_{t-1}", "the weight before"),
        "rate": _RATE,
        "decay": _number(r"\lambda", "weight decay"),
    },
    sources=(_ADAMW, _torch("AdamW")),
)
def decayed(weight: float, rate: float, decay: float) -> float:
    """Decoupled weight decay.

    AdamW shrinks the weight itself and does not change its gradient and moments.
    """
    return weight * (1 - rate * decay)


@formula(
    r"\v{total} + \v{slope}^{2}",
    result=_number("s_t", "sum of squared gradients"),
    symbols={"total": _number("s_{t-1}", "sum of squared gradients before"), "slope": _SLOPE},
    sources=(_ADAGRAD, _torch("Adagrad")),
)
def squares_summed(total: float, slope: float) -> float:
    """Sum of squared gradients.

    It only grows, so AdaGrad’s rate for each weight only shrinks.
    """
    return total + slope**2


@formula(
    r"\v{beta} \cdot \v{mean} + (1 - \v{beta}) \cdot \v{slope}",
    result=_MEAN,
    symbols={"beta": _BETA_1, "mean": _number("m_{t-1}", "running mean before"), "slope": _SLOPE},
    sources=(_ADAM, _torch("Adam")),
)
def running_mean(beta: float, mean: float, slope: float) -> float:
    """First moment: running mean of the gradient."""
    return beta * mean + (1 - beta) * slope


@formula(
    r"\v{beta} \cdot \v{square} + (1 - \v{beta}) \cdot \v{slope}^{2}",
    result=_SQUARE,
    symbols={"beta": _BETA, "square": _number("v_{t-1}", "running mean of squares before"), "slope": _SLOPE},
    sources=(_ADAM, _RMSPROP, _torch("RMSprop")),
)
def running_square(beta: float, square: float, slope: float) -> float:
    """Second moment: running mean of the squared gradient."""
    return beta * square + (1 - beta) * slope**2


def _unbiased(mean: float, beta: float, step: float) -> float:
    return mean / (1 - beta**step)


@formula(
    r"\frac{\v{mean}}{1 - \v{beta}^{\v{step}}}",
    result=_number(r"\hat m_t", "first moment without its bias"),
    symbols={"mean": _MEAN, "beta": _BETA_1, "step": _STEP},
    sources=(_ADAM, _torch("Adam")),
)
def unbiased_mean(mean: float, beta: float, step: float) -> float:
    """First moment without the bias from starting at zero."""
    return _unbiased(mean, beta, step)


@formula(
    r"\frac{\v{square}}{1 - \v{beta}^{\v{step}}}",
    result=_number(r"\hat v_t", "second moment without its bias"),
    symbols={"square": _SQUARE, "beta": _BETA_2, "step": _STEP},
    sources=(_ADAM, _torch("Adam")),
)
def unbiased_square(square: float, beta: float, step: float) -> float:
    """Second moment without its bias towards the zero that it began with."""
    return _unbiased(square, beta, step)


@formula(
    r"\v{weight} - \v{rate} \cdot \v{direction}",
    result=_NEXT,
    symbols={"weight": _WEIGHT, "rate": _RATE, "direction": _number("d_t", "the gradient, or the momentum buffer")},
    sources=(_torch("SGD"),),
)
def plain_step(weight: float, rate: float, direction: float) -> float:
    """The step of SGD: the same rate for every weight."""
    return weight - rate * direction


@formula(
    r"\v{weight} - \frac{\v{rate} \cdot \v{direction}}{\sqrt{\v{square}} + \v{epsilon}}",
    result=_NEXT,
    symbols={
        "weight": _WEIGHT,
        "rate": _RATE,
        "direction": _number("d_t", "the gradient; for Adam its unbiased mean"),
        "square": _number("q_t", "the sum or mean of its squares; for Adam unbiased"),
        "epsilon": _number(r"\epsilon", "what keeps the quotient finite"),
    },
    sources=(_ADAM, _ADAGRAD, _torch("Adam")),
)
def scaled_step(weight: float, rate: float, direction: float, square: float, epsilon: float) -> float:
    """The step of the adaptive optimizers: each weight by the size of its own gradients."""
    return weight - rate * direction / (square**0.5 + epsilon)
