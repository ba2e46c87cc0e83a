"""A linear layer in int8 on an Ascend 950, a scale per channel, beside its float reference."""

import numpy as np

from bittrue import ascend

rng = np.random.default_rng(0)
x, weight, bias = rng.standard_normal((4, 256)), rng.standard_normal((256, 6)) / 16, rng.standard_normal(6)
reference = np.maximum(x @ weight + bias, 0)

x_scale, w_scale, y_scale = np.abs(x).max() / 127, np.abs(weight).max(axis=0) / 127, reference.max() / 255
x_codes = np.rint(x / x_scale).astype(np.int8)
w_codes = np.rint(weight / w_scale).astype(np.int8)
bias_codes = np.rint(bias / (x_scale * w_scale)).astype(np.int32)
words = ascend.QuantParam(x_scale * w_scale / y_scale, signed=False)
report = ascend.matmul(x_codes, w_codes, bias_codes, quant=("VREQ8", words), relu=True, report=True)

y = np.asarray(report.result) * y_scale
print("float reference\n", reference.round(3))
print("bit-true result, uint8 codes times their scale\n", y.round(3))
print(f"largest difference {np.abs(y - reference).max():.4f}; one code is worth {y_scale:.4f}")
