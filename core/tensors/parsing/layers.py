"""Layers of ``torch.nn`` in the reader's own language: parameters as torch makes them, and what forward computes."""

_WRITTEN = """
class Linear(nn.Module):
    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
        self.weight = nn.Parameter(torch.empty(out_features, in_features, device=device, dtype=dtype))
        nn.init.kaiming_uniform_(self.weight, a=5 ** 0.5)
        self.bias = None
        if bias:
            self.bias = nn.Parameter(torch.empty(out_features, device=device, dtype=dtype))
            nn.init.uniform_(self.bias, -(in_features ** -0.5), in_features ** -0.5)
    def forward(self, x):
        return F.linear(x, self.weight, self.bias)

class Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, device=None, dtype=None):
        self.weight = nn.Parameter(torch.randn(num_embeddings, embedding_dim, device=device, dtype=dtype))
    def forward(self, x):
        return F.embedding(x, self.weight)

class LayerNorm(nn.Module):
    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True):
        self.shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(self.shape)) if elementwise_affine else None
        self.bias = nn.Parameter(torch.zeros(self.shape)) if elementwise_affine and bias else None
    def forward(self, x):
        return F.layer_norm(x, self.shape, self.weight, self.bias, self.eps)

class RMSNorm(nn.Module):
    def __init__(self, normalized_shape, eps=None, elementwise_affine=True):
        self.shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(self.shape)) if elementwise_affine else None
    def forward(self, x):
        return F.rms_norm(x, self.shape, self.weight, self.eps)

class GELU(nn.Module):
    def __init__(self, approximate='none'):
        self.approximate = approximate
    def forward(self, x):
        return F.gelu(x, approximate=self.approximate)

class Softmax(nn.Module):
    def __init__(self, dim):
        self.dim = dim
    def forward(self, x):
        return F.softmax(x, dim=self.dim)

class Dropout(nn.Module):
    def __init__(self, p=0.5):
        self.p = p
    def forward(self, x):
        return F.dropout(x, self.p)

class Sequential(nn.Module):
    def __init__(self, *layers):
        self.layers = list(layers)
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

class SGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {'lr': lr})
    def step(self):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    p.data -= group['lr'] * p.grad
"""
"""Classes with parameters, settings or steps of their own; those of ``torch.optim`` last."""

LAYERS = _WRITTEN + "".join(
    f"class {name}(nn.Module):\n    def forward(self, {takes}):\n        return {gives}\n"
    for name, takes, gives in (
        ("Identity", "x", "x"),
        ("ReLU", "x", "F.relu(x)"),
        ("SiLU", "x", "F.silu(x)"),
        ("Tanh", "x", "torch.tanh(x)"),
        ("Sigmoid", "x", "torch.sigmoid(x)"),
        ("CrossEntropyLoss", "x, y", "F.cross_entropy(x, y)"),
        ("MSELoss", "x, y", "F.mse_loss(x, y)"),
    )
)
"""All classes; those made here are a function alone."""
