"""Trains a Hugging Face model with PyTorch's fully_shard, as settings.json beside it says.

Start it with run.sh, or by torchrun. training_job.py has the model, its data and its loss.
"""

import json
import os

import torch
import torch.distributed as dist
import training_job as job
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def read_settings():
    settings = job.read_settings()
    free = settings["sharding"]["reshard_after_forward"]  # "true", "false" or a number of ranks
    settings["sharding"]["reshard_after_forward"] = json.loads(str(free).lower())
    return settings


def build_model(settings):
    """In fp32: fully_shard casts what it gathers."""
    return job.build_model(settings, torch.float32)


def final_norm_of(model):
    """The module between the last block and the head, or None."""
    blocks = job.blocks_of(model)
    for parent in model.modules():
        children = list(parent.children())
        if any(child is blocks for child in children):
            after = children[[child is blocks for child in children].index(True) + 1 :]
            norms = [m for m in after if "norm" in type(m).__name__.lower()]
            return norms[0] if norms else None
    return None


def shard(model, settings, mesh):
    """Units as the plan was priced: the embedding, each block, [norm, head]; a tied table is one
    unit with norm and head, which stays gathered from forward to backward."""
    job.recompute_blocks(model, settings)
    blocks = job.blocks_of(model)
    if settings["model"]["compile"]:
        for block in blocks:
            block.compile()
    precision = settings["precision"]
    policy = MixedPrecisionPolicy(
        param_dtype=job.TYPES[precision["parameters"]],
        reduce_dtype=job.TYPES[precision["reductions"]],
    )
    common = {"mesh": mesh, "mp_policy": policy}
    free = settings["sharding"]["reshard_after_forward"]
    for block in blocks:
        fully_shard(block, **common, reshard_after_forward=free)
    embedding = model.get_input_embeddings()
    head = model.get_output_embeddings()
    last = [m for m in (final_norm_of(model), head) if m is not None]
    if head is not None and head.weight is embedding.weight:
        fully_shard([embedding, *last], **common, reshard_after_forward=False)
    else:
        fully_shard(embedding, **common, reshard_after_forward=free)
        fully_shard(last, **common, reshard_after_forward=False)
    fully_shard(model, **common)


def initialise(model, device, seed):
    """Memory for the shards, and weights in them."""
    model.to_empty(device=device)
    torch.manual_seed(seed)
    for module in model.modules():
        job.initialise(model, module)


def train_step(model, optimizer, data, settings):
    """All micro-batches and one step of the optimizer. \\returns loss and norm of gradients."""

    def reduces(over_shards, over_replicas):
        model.set_requires_gradient_sync(over_shards)
        model.set_requires_all_reduce(over_replicas)  # once a step, of the sum of its micro-batches

    total = job.accumulate(model, data, settings, reduces)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), job.LARGEST_NORM)
    optimizer.step()
    optimizer.zero_grad()
    return total, norm.full_tensor()


def main():
    asked = job.read_words(["cuda", "cpu"])
    settings = read_settings()
    if asked.device == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no GPU here: --device cpu trains on CPUs, over gloo")
    dist.init_process_group("nccl" if asked.device == "cuda" else "gloo")
    device = torch.device(asked.device)
    if asked.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    sharding = settings["sharding"]
    sizes = (sharding["replicas"], sharding["shards"])
    if sizes[0] * sizes[1] != dist.get_world_size():
        raise SystemExit(f"settings.json is for {sizes[0] * sizes[1]} ranks")
    mesh = init_device_mesh(asked.device, sizes, mesh_dim_names=("replicate", "shard"))
    if sizes[0] == 1:
        mesh = mesh["shard"]

    model = build_model(settings)
    shard(model, settings, mesh)
    initialise(model, device, asked.seed)
    optimizer = job.make_optimizer(model.parameters(), settings, asked.learning_rate)
    seed = asked.seed + dist.get_rank()
    data = job.batches(settings, model.config.vocab_size, device, seed)
    for step in range(1, asked.steps + 1):
        job.report(step, *train_step(model, optimizer, data, settings))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
