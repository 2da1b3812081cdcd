"""Trains a Hugging Face model with Megatron-FSDP, as settings.json beside it says.

Start it with run.sh, or by torchrun. training_job.py has the model, its data and its loss.
"""

import functools
import os

import torch
import torch.distributed as dist
import training_job as job
from megatron_fsdp import MixedPrecisionPolicy, fully_shard_model, fully_shard_optimizer
from torch.distributed.device_mesh import init_device_mesh


def build_model(settings, device):
    """On the meta device where weights are sharded: each module then gets memory and weights when
    its shards are cut. no_shard takes a model that is whole."""
    model = job.build_model(settings, job.TYPES[settings["precision"]["parameters"]])
    whole = settings["sharding"]["zero_stage"] == 0
    for module in model.modules():
        own = [*module.parameters(recurse=False)]
        if own and not whole:
            module.reset_parameters = functools.partial(job.initialise, model, module)
            continue
        module.to_empty(device=device, recurse=False)
        job.initialise(model, module)
    model.tie_weights()
    return model


def shard(model, settings, mesh):
    """Each block is a unit; the embedding, the last norm and the head are what is left."""
    unit = type(job.blocks_of(model)[0])
    job.recompute_blocks(model, settings)
    sharding = settings["sharding"]
    hybrid = sharding["replicas"] > 1
    all_ranks = mesh["hybrid"].get_group() if hybrid else None
    return fully_shard_model(
        model,
        device_mesh=mesh,
        expt_device_mesh=mesh,  # experts are sharded like other weights
        dp_shard_dim="shard",
        dp_outer_dim="replicate" if hybrid else None,
        tp_dim="tp",
        hybrid_fsdp_group=all_ranks,
        hybrid_fsdp_expt_group=all_ranks,
        fsdp_unit_modules=[unit],
        zero_dp_strategy=sharding["zero_stage"],
        outer_dp_sharding_strategy=1 if sharding["outer_shards_optimizer"] else 0,
        init_model_with_meta_device=sharding["zero_stage"] > 0,
        mixed_precision_policy=MixedPrecisionPolicy(
            main_params_dtype=torch.float32,
            main_grads_dtype=job.TYPES[settings["precision"]["reductions"]],
        ),
        overlap_grad_reduce=sharding["overlap_grad_reduce"],
        overlap_param_gather=sharding["overlap_param_gather"],
        sync_model_each_microbatch=sharding["reduce_every_microbatch"],
        calculate_per_token_loss=sharding["calculate_per_token_loss"],
        fsdp_double_buffer=sharding["double_buffer"],
    )


def clip_gradients(model, settings, mesh, largest):
    """Scales gradients down to a norm of at most `largest`, after they are reduced. \\returns the
    norm. A rank has none of a tensor whose shard is empty, so its norms are not DTensor's."""
    sharding = settings["sharding"]
    gradients = [p.grad.to_local() for p in model.parameters() if p.grad is not None]
    # Megatron-FSDP 0.6.1 scales no gradients that it shards over the replicas too.
    if sharding["calculate_per_token_loss"] or sharding["outer_shards_optimizer"]:
        torch._foreach_div_(gradients, dist.get_world_size())  # sums over the ranks become means
    squares = torch.zeros((), dtype=torch.float32, device="cuda")
    if gradients:
        squares += torch.stack(torch._foreach_norm(gradients, dtype=torch.float32)).square().sum()
    if sharding["zero_stage"] > 0:
        dist.all_reduce(squares, group=mesh["shard"].get_group())
    if sharding["outer_shards_optimizer"]:
        dist.all_reduce(squares, group=mesh["replicate"].get_group())
    norm = squares.sqrt()
    torch._foreach_mul_(gradients, (largest / (norm + 1e-6)).clamp(max=1.0))
    return norm


def train_step(model, optimizer, data, settings, mesh):
    """All micro-batches and one step of the optimizer. \\returns loss and norm of gradients."""
    total = job.accumulate(model, data, settings, lambda now, _: model.set_model_auto_sync(now))
    norm = clip_gradients(model, settings, mesh, job.LARGEST_NORM)
    optimizer.step()
    optimizer.zero_grad()
    return total, norm


def main():
    asked = job.read_words(["cuda"])
    settings = job.read_settings()
    dist.init_process_group("nccl")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    sharding = settings["sharding"]
    sizes = (sharding["replicas"], sharding["shards"], 1)
    if sizes[0] * sizes[1] != dist.get_world_size():
        raise SystemExit(f"settings.json is for {sizes[0] * sizes[1]} ranks")
    mesh = init_device_mesh("cuda", sizes, mesh_dim_names=("replicate", "shard", "tp"))
    mesh["replicate", "shard"]._flatten("hybrid")

    torch.manual_seed(asked.seed)
    model = build_model(settings, device)
    vocabulary = model.config.vocab_size
    model = shard(model, settings, mesh)
    optimizer = fully_shard_optimizer(
        job.make_optimizer(model.parameters(), settings, asked.learning_rate)
    )
    data = job.batches(settings, vocabulary, device, asked.seed + dist.get_rank())
    for step in range(1, asked.steps + 1):
        job.report(step, *train_step(model, optimizer, data, settings, mesh))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
