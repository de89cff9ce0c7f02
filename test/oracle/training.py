"""The training loop in plain float PyTorch: loss, clipping, AdamW and SGD, learning rates.

Step s counts from 1; step 1 uses the first batch.

  loss       mean over all tokens of the batch of -log softmax(logits)[label]; microbatches accumulate
             the gradient of the sum, and the division by the number of tokens comes once, at the end
  grad_norm  root of the sum of squares of all gradients of the mean loss, before clipping
  clipping   gradients times min(1, clip_norm / (grad_norm + 1e-6)), as torch.nn.utils.clip_grad_norm_
  AdamW      m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
             p = p - lr wd p                                        (only parameters of two or more dimensions)
             p = p - lr (m / (1 - b1^s)) / (sqrt(v / (1 - b2^s)) + eps)
  SGD        p = p - lr g
  lr         s <= warmup:  lr s / warmup
             constant:     lr
             cosine:       min_lr + (lr - min_lr) (1 + cos(pi t)) / 2 with t = min(1, (s - warmup) / (decay - warmup))
"""

import math

import torch
import torch.nn.functional as F

import models


def learning_rate(options, step):
    lr, warmup = options["lr"], options["warmup-steps"]
    if step <= warmup:
        return lr * step / warmup
    if options["lr-schedule"] == "constant":
        return lr
    progress = min(1.0, (step - warmup) / (options["decay-steps"] - warmup))
    return options["min-lr"] + (lr - options["min-lr"]) * 0.5 * (1 + math.cos(math.pi * progress))


def batch_of(tokens, seq, batch, step):
    """Step `step` (from 1) in sequential order: inputs and labels, [batch, seq] each."""
    samples = (len(tokens) - 1) // seq
    rows = [((step - 1) * batch + i) % samples * seq for i in range(batch)]
    chosen = torch.stack([tokens[row:row + seq + 1] for row in rows])
    return chosen[:, :-1], chosen[:, 1:]


def accumulate_gradients(config, weights, inputs, labels, microbatches):
    """Leaves the gradient of the summed loss in .grad of each weight; returns the summed loss."""
    for weight in weights.values():
        weight.grad = None
    total = 0.0
    for part, part_labels in zip(inputs.chunk(microbatches), labels.chunk(microbatches)):
        predictions = models.logits(config, weights, part)
        loss = F.cross_entropy(predictions.flatten(0, 1), part_labels.flatten(), reduction="sum")
        loss.backward()
        total += loss.item()
    return total


def update_adamw(weight, gradient, moments, options, lr, step):
    m, v = moments
    m.mul_(options["beta1"]).add_(gradient, alpha=1 - options["beta1"])
    v.mul_(options["beta2"]).addcmul_(gradient, gradient, value=1 - options["beta2"])
    if weight.dim() >= 2:
        weight.mul_(1 - lr * options["weight-decay"])
    first = m / (1 - options["beta1"]**step)
    second = v / (1 - options["beta2"]**step)
    weight.sub_(lr * first / (second.sqrt() + options["eps"]))


def train(config, initial, tokens, options, steps, dtype=torch.float32):
    """Yields (step, loss, grad_norm, lr)."""
    weights = {name: value.to(dtype).clone().requires_grad_(True) for name, value in initial.items()}
    moments = {name: (torch.zeros_like(w), torch.zeros_like(w)) for name, w in weights.items()}
    for step in range(1, steps + 1):
        inputs, labels = batch_of(tokens, options["seq"], options["batch"], step)
        loss = accumulate_gradients(config, weights, inputs, labels, options["microbatches"]) / labels.numel()
        lr = learning_rate(options, step)
        with torch.no_grad():
            gradients = {name: w.grad / labels.numel() for name, w in weights.items()}
            norm = math.sqrt(sum(float((g.double()**2).sum()) for g in gradients.values()))
            scale = min(1.0, options["clip-norm"] / (norm + 1e-6))
            for name, weight in weights.items():
                if options["optimizer"] == "adamw":
                    update_adamw(weight, gradients[name] * scale, moments[name], options, lr, step)
                else:
                    weight.sub_(lr * scale * gradients[name])
        yield step, loss, norm, lr
