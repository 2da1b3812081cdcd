"""What the training scripts of a job share: its settings, model, data, loss and optimizer.

The model is built from config.json, without weights of a checkpoint. The tokens are random: replace
batches() by the job's own data.
"""

import argparse
import json
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from transformers import AutoConfig, AutoModelForCausalLM

FOLDER = Path(__file__).parent
LARGEST_NORM = 1.0  # of gradients, which are scaled down to it
TYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32, "float16": torch.float16}


def read_settings():
    return json.loads((FOLDER / "settings.json").read_text())


def read_words(devices):
    """The words behind the script's name. The first of `devices` is the default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--device", default=devices[0], choices=devices)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def build_model(settings, dtype):
    """The model on the meta device: weights get memory when their shards do."""
    config = AutoConfig.from_pretrained(FOLDER)
    config.use_cache = False
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(
            config, dtype=dtype, attn_implementation=settings["model"]["attention"]
        )
    model.train()
    if settings["model"]["loss"] == "chunked":
        lose_by_chunks(model)
    return model


def blocks_of(model):
    """The list of the model's equal blocks: the longest ModuleList."""
    lists = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList)]
    return max(lists, key=len)


def recompute_blocks(model, settings):
    """Lets blocks run again in backward, as the settings say."""
    blocks, recompute = blocks_of(model), settings["recompute"]
    for index in range(len(blocks)):
        if recompute["blocks"] == "full" and index % recompute["interval"] == 0:
            blocks[index] = checkpoint_wrapper(blocks[index])


def initialise(model, module):
    """Draws a module's own weights and computes its buffers, as transformers does."""
    with torch.no_grad():
        model._init_weights(module)


def make_optimizer(parameters, settings, learning_rate):
    kind = settings["optimizer"]["kind"]
    if kind == "adamw":
        return torch.optim.AdamW(parameters, lr=learning_rate, fused=settings["optimizer"]["fused"])
    momentum = 0.9 if kind == "sgd_momentum" else 0.0
    return torch.optim.SGD(parameters, lr=learning_rate, momentum=momentum)


def batches(settings, vocabulary, device, seed):
    """Micro-batches without end: [micro_batch_size, sequence_length + 1] tokens."""
    batch = settings["batch"]
    generator = torch.Generator().manual_seed(seed)
    shape = (batch["micro_batch_size"], batch["sequence_length"] + 1)
    while True:
        yield torch.randint(0, vocabulary, shape, generator=generator).to(device)


class ChunkedLoss(torch.autograd.Function):
    """Mean cross-entropy of hidden @ weight.T, some rows at a time: whole logits never exist.

    Nothing is between the loss and backward, so both gradients are made in the forward pass.
    """

    @staticmethod
    def forward(ctx, hidden, weight, targets, rows):
        hidden_gradient, weight_gradient = torch.empty_like(hidden), torch.zeros_like(weight)
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for first in range(0, len(hidden), rows):
            part = slice(first, first + rows)
            logits = (hidden[part] @ weight.T).float()
            largest = logits.amax(dim=-1, keepdim=True)
            own = logits.gather(1, targets[part, None]) - largest
            weights = logits.sub_(largest).exp_()  # in place, as are the lines below
            sums = weights.sum(dim=-1, keepdim=True)
            total += (sums.log() - own).sum()
            weights.div_(sums).scatter_add_(1, targets[part, None], torch.full_like(own, -1.0))
            gradient = weights.div_(len(hidden)).to(hidden.dtype)
            torch.mm(gradient, weight, out=hidden_gradient[part])
            weight_gradient.addmm_(gradient.T, hidden[part])
        ctx.save_for_backward(hidden_gradient, weight_gradient)
        return total / len(hidden)

    @staticmethod
    def backward(ctx, upstream):
        hidden_gradient, weight_gradient = ctx.saved_tensors
        return hidden_gradient.mul_(upstream), weight_gradient.mul_(upstream), None, None


def chunk_rows(tokens, vocabulary, width):
    """As many chunks as the vocabulary is wider than the hidden state, of 2^n rows each."""
    rows = -(-tokens // -(-vocabulary // width))
    return 1 << (rows - 1).bit_length()


def lose_by_chunks(model):
    """Has the head return the loss of head.targets instead of logits."""
    head = model.get_output_embeddings()

    def loss(hidden):
        rows = hidden.flatten(0, -2)
        size = chunk_rows(len(rows), *head.weight.shape)
        return ChunkedLoss.apply(rows, head.weight, head.targets, size)

    head.forward = loss


def loss_of(model, tokens, settings):
    """Cross-entropy of the next token, in fp32: on whole logits or by chunks."""
    inputs, targets = tokens[:, :-1], tokens[:, 1:].flatten()
    if settings["model"]["loss"] == "chunked":
        getattr(model, "module", model).get_output_embeddings().targets = targets
        return model(input_ids=inputs).logits
    return F.cross_entropy(model(input_ids=inputs).logits.float().flatten(0, 1), targets)


def accumulate(model, data, settings, reduces):
    """Forward and backward of each micro-batch. Before each, `reduces` is told whether its
    gradients are reduced, and whether it is the last. \\returns the mean loss."""
    count = settings["batch"]["micro_batches"]
    every = settings["sharding"]["reduce_every_microbatch"]
    total = 0.0
    for index in range(count):
        last = index + 1 == count
        reduces(every or last, last)
        loss = loss_of(model, next(data), settings) / count
        loss.backward()
        total += loss.detach()
    return total


def report(step, loss, norm):
    """Prints the mean loss of all ranks, and the norm of the gradients before it was clipped."""
    dist.all_reduce(loss, op=dist.ReduceOp.SUM)
    mean = loss.item() / dist.get_world_size()
    if dist.get_rank() == 0:
        print(f"step {step} loss {mean:.4f} norm {norm.item():.4f}", flush=True)
