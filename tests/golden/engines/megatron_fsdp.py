#!/usr/bin/env python3
"""Megatron-FSDP's own buffers: states, and what its allocators hand out in a pass.

A GPT of megatron.core on fake tensors runs two forward and backward passes in a fake process group;
figures are of the second one. The optimizer's shard of the fullest rank is worked out from the
buffers' own indices, which for rank 0 give what its optimizer holds. Bytes:

    weights, gradients   persistent buffers, padded as the engine pads them
    main_weights         and moments, of the fullest rank
    gathered_and_staged  most at once of buckets of weights and of gradients, handed out and not
                         taken back; with double buffers the pools and what lies outside them
    gathers, reductions  every bucket that is handed out, in order

There is no clock: what is freed in the order of the host is free at once.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 einops
    MEGATRON=megatron-lm venv/bin/python tests/golden/engines/megatron_fsdp.py \\
        > tests/golden/engines/megatron_fsdp.json
"""

import contextlib
import io
import sys
import types

import without_gpu

without_gpu.use("cpu")

import golden
import megatron_ddp
import megatron_models as megatron
import shapes
import torch
from megatron.core.distributed import DistributedDataParallelConfig
from megatron.core.distributed.fsdp import mcore_fsdp_adapter as adapter
from megatron.core.distributed.fsdp.src.megatron_fsdp import param_and_grad_buffer as buffers
from megatron.core.distributed.fsdp.src.megatron_fsdp import utils
from megatron.core.transformer import dot_product_attention
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily

STRATEGIES = ["no_shard", "optim", "optim_grads", "optim_grads_params"]
MODELS = {
    "8b": shapes.LLAMA_8B, "8b-8": shapes.cut(shapes.LLAMA_8B, 8), "1b": shapes.LLAMA_1B,
    "1b-tied": {**shapes.LLAMA_1B, **shapes.TIED}, "13b": shapes.LLAMA_13B,
    "13b-8": shapes.cut(shapes.LLAMA_13B, 8), "70b": shapes.LLAMA_70B,
    "qwen2-7b": shapes.QWEN2_7B, "qwen2-7b-8": shapes.cut(shapes.QWEN2_7B, 8),
    "qwen2-72b": shapes.QWEN2_72B, "qwen2-72b-6": shapes.cut(shapes.QWEN2_72B, 6),
    "qwen3-1b-8": shapes.cut(shapes.QWEN3_1B, 8), "odd": shapes.ODD, "odder": shapes.ODDER,
    "odder-tied": {**shapes.ODDER, **shapes.TIED}, "mixtral": shapes.MIXTRAL, "gpt2": shapes.GPT2,
    "small-table": shapes.SMALL_TABLE, "wide-gpt2": shapes.WIDE_GPT2,
    # Of tensors that are no multiples of a chunk, so that there are gaps between them.
    "gaps": shapes.llama(3, 1216, 10880, 16, 4, 32000, 112),
    "wide-gaps": shapes.llama(3, 4160, 9856, 14, 7, 32000, 112),
    "long-chunk": shapes.llama(3, 3744, 4476, 20, 10, 50257, 80),  # longer than the unit
    "8b-1": shapes.cut(shapes.LLAMA_8B, 1)}


def outside_fake(function):
    """The function, with real tensors inside: device meshes read them."""
    def call(*args, **kwargs):
        with unset_fake_temporarily():
            return function(*args, **kwargs)
    return call


class Log:
    """Buckets that allocators hand out and take back."""

    def __init__(self):
        self.live, self.most, self.handed_out = {}, 0, {"gathers": [], "reductions": []}

    def clear(self):
        self.__init__()

    def hand_out(self, key, kind, size, pooled=False):
        if key in self.live:
            return
        self.live[key] = 0 if pooled else size  # a pool's bytes are there all the time
        self.handed_out[kind].append(size)
        self.most = max(self.most, sum(self.live.values()))

    def take_back(self, key):
        self.live.pop(key, None)


LOG = Log()
POOL = []  # the kind of the pool that asks its backup for a bucket


def watch(allocator, kind_of, is_pool=False):
    allocate, free = allocator.allocate, allocator.free

    def logged(self, bucket_id, size, dtype, *args, **kwargs):
        key, kind = (id(self), bucket_id), POOL[-1] if POOL else kind_of(self)
        before = len(LOG.live)
        if is_pool:
            POOL.append(kind)
        else:
            LOG.hand_out(key, kind, size * dtype.itemsize)
        result = allocate(self, bucket_id=bucket_id, size=size, dtype=dtype, *args, **kwargs)
        if is_pool:
            POOL.pop()
            backup = getattr(self, "backup_allocator", None)
            if len(LOG.live) == before and (id(backup), bucket_id) not in LOG.live:
                LOG.hand_out(key, kind, size * dtype.itemsize, pooled=True)
        return result

    def released(self, bucket_id, *args, **kwargs):
        LOG.take_back((id(self), bucket_id))
        return free(self, bucket_id, *args, **kwargs)

    allocator.allocate, allocator.free = logged, released


watch(buffers.TemporaryBucketAllocator, lambda _: "reductions")
watch(buffers.StorageResizeBasedBucketAllocator, lambda _: "gathers")
for pool in (buffers.FixedPoolAllocator, buffers.MaxPoolAllocator):
    watch(pool, lambda self: "reductions" if "grad" in self.name else "gathers", is_pool=True)

V1 = adapter.FullyShardedDataParallelV1
V1._init_dist_index = outside_fake(V1._init_dist_index)
V1.sync_rng_states_across_tp_group = lambda self: None
utils.FSDPDistributedIndex.get_logical_hybrid_fsdp_rank = outside_fake(
    utils.FSDPDistributedIndex.get_logical_hybrid_fsdp_rank)
buffers.make_fsdp_dtensor = lambda local_tensor, **_: local_tensor  # sizes only
buffers._coalescing_manager = lambda *_, **__: contextlib.nullcontext(
    types.SimpleNamespace(wait=lambda *_: None))
dot_product_attention.tensor_parallel.get_cuda_rng_tracker = lambda: types.SimpleNamespace(
    fork=lambda *_: contextlib.nullcontext())
torch.cuda.current_device = lambda: "0"
_empty = torch.empty
torch.empty = lambda *args, device=None, **kwargs: _empty(
    *args, device="cpu" if str(device) == "0" else device, **kwargs)
torch.nn.Module.to = lambda self, *_, **__: self
_mesh = torch.distributed.device_mesh.DeviceMesh.__init__
torch.distributed.device_mesh.DeviceMesh.__init__ = (
    lambda self, kind, *args, **kwargs: _mesh(self, "cpu", *args, **kwargs))


def case(model, dp, zero, *, fp32=False, step=True, **more):
    return {"model": model, "step": step, "layout": {
        "dp_shard": dp, "zero_stage": zero, "fp32_gradients": fp32, **more}}


def cases():
    for zero in (0, 1, 2, 3):
        yield case("8b-8", 8, zero)
        yield case("8b-8", 48, zero, step=zero > 1)
    for zero in (2, 3):
        yield case("8b-8", 8, zero, fp32=True)
    for dp in (2, 64):
        yield case("8b-8", dp, 3)
    yield case("8b-8", 64, 1, step=False)
    yield case("8b-8", 64, 2)
    yield case("8b-8", 64, 3, fp32=True)
    yield case("8b", 8, 3)
    yield case("8b", 64, 3, step=False)
    yield case("8b", 48, 1, step=False)
    for zero in (1, 2, 3):
        yield case("8b-8", 8, zero, dp_replicate=2)
    yield case("8b-8", 24, 3, step=False, dp_replicate=2)
    yield case("8b-8", 8, 3, dp_replicate=2, outer_shards_optimizer=True)
    yield case("8b-8", 24, 3, step=False, dp_replicate=2, outer_shards_optimizer=True)
    yield case("8b-8", 8, 3, double_buffer=True)
    yield case("1b", 8, 3, double_buffer=True)
    for dp in (8, 48):
        yield case("1b", dp, 3, step=dp == 8)
        yield case("1b-tied", dp, 3, step=dp == 8)
        yield case("13b", dp, 3, step=False)
        yield case("odd", dp, 3)
        yield case("odder", dp, 3)
        yield case("gpt2", dp, 3)
    for model in ("1b-tied", "odd", "odder"):
        yield case(model, 64, 3, step=False)
    yield case("odder-tied", 8, 2)
    yield case("odder-tied", 48, 3)
    yield case("13b-8", 64, 3)
    yield case("13b", 64, 2, step=False)
    yield case("odd", 48, 2)
    yield case("odder", 48, 1, step=False)
    yield case("odder", 24, 3, step=False, dp_replicate=2, outer_shards_optimizer=True)
    yield case("qwen2-7b-8", 64, 3)
    yield case("qwen2-7b-8", 512, 3)
    yield case("qwen2-7b", 512, 2, step=False)
    yield case("qwen2-72b-6", 64, 3)
    yield case("qwen2-72b-6", 256, 2)
    yield case("qwen2-72b-6", 256, 3)
    for zero in (1, 2, 3):
        yield case("qwen2-72b", 256, zero, step=False)
    yield case("70b", 256, 3, step=False)
    yield case("70b", 256, 2, step=False)
    yield case("qwen3-1b-8", 8, 3)
    yield case("mixtral", 8, 3, step=False)
    yield case("mixtral", 8, 3, ep=4, step=False)
    for zero in (2, 3):  # what is outside the units in one bucket, or a layer of it in two
        yield case("small-table", 8, zero)
        yield case("wide-gpt2", 8, zero)
    yield case("small-table", 8, 3, double_buffer=True)
    yield case("wide-gpt2", 48, 3)
    yield case("wide-gpt2", 64, 3)
    yield case("8b-8", 1024, 3)
    yield case("gaps", 2, 1, step=False)  # gaps on every rank: none has moments for all it holds
    yield case("gaps", 8, 3)
    yield case("wide-gaps", 8, 2, step=False)
    yield case("wide-gaps", 64, 3, fp32=True)
    yield case("long-chunk", 3, 2, step=False)
    for model in ("gaps", "odd", "odder"):
        yield case(model, 8, 0, step=False)
    yield case("odd", 64, 0, step=False, fp32=True)
    yield case("8b-1", 8, 3, double_buffer=True)  # one of two buffers is used


def name(case):
    layout = case["layout"]
    words = [f"{case['model']} dp {layout['dp_shard']}"]
    words[0] += f" x {layout['dp_replicate']}" if "dp_replicate" in layout else ""
    words[0] += f" ep {layout['ep']}" if "ep" in layout else ""
    words.append(STRATEGIES[layout["zero_stage"]])
    words += ["optimizer over all ranks"] if layout.get("outer_shards_optimizer") else []
    words += ["double buffers"] if layout.get("double_buffer") else []
    words += ["fp32 gradients"] if layout["fp32_gradients"] else []
    return ", ".join(words)


def ddp_config(layout):
    """As Megatron-LM's training loop makes it (megatron/training/training.py)."""
    config = DistributedDataParallelConfig(
        use_distributed_optimizer=True, use_megatron_fsdp=True, overlap_grad_reduce=True,
        overlap_param_gather=True, data_parallel_sharding_strategy=STRATEGIES[layout["zero_stage"]],
        num_distributed_optimizer_instances=layout.get("dp_replicate", 1),
        outer_dp_sharding_strategy="optim" if layout.get("outer_shards_optimizer") else "no_shard",
        fsdp_double_buffer=layout.get("double_buffer", False),
        megatron_fsdp_main_grads_dtype=torch.float32 if layout["fp32_gradients"] else None)
    ranks = layout["dp_shard"] * layout.get("dp_replicate", 1)
    config.bucket_size = max(40_000_000, 1_000_000 * ranks)
    return config


def run(fsdp):
    """Two passes; the log is of the second one."""
    fsdp.train()
    tokens = torch.zeros(1, 128, dtype=torch.long)
    mask = torch.ones(1, 1, 128, 128, dtype=torch.bool)
    for _ in range(2):
        LOG.clear()
        out = fsdp(tokens, tokens, mask)
        out.float().sum().backward()
        fsdp.finish_grad_sync()


def states(fsdp, layout):
    """Bytes of the persistent buffers, and of the optimizer's part of the fullest rank."""
    size = lambda buffer: buffer.data_size * buffer.dtype.itemsize
    whole = fsdp.param_and_grad_buffer
    weights = gradients = main = own = fullest = 0
    per_rank = {}
    for group in whole.parameter_groups:
        elements = sum(p.numel() for p in group.params)
        kept = group.hfsdp_helper_wbuf or group.model_weight_buffer
        weights += size(kept) if kept else 2 * elements
        gradients += size(group.hfsdp_helper_gbuf or group.main_grad_buffer)
        main += size(group.main_weight_buffer)
        buffer = group.main_weight_buffer
        ranks = buffer.dp_world_size if layout["zero_stage"] > 0 else 1
        shard = -(-buffer.bucket_index.size // ranks)
        shares = [0] * ranks
        for item in buffer.bucket_index.items:
            begin, end = item.global_data_index, item.global_data_index + item.size
            for rank in range(begin // shard, min(ranks, (end - 1) // shard + 1)):
                shares[rank] += min(end, (rank + 1) * shard) - max(begin, rank * shard)
        own += shares[0]
        per_rank.setdefault(ranks, []).append(shares)
    local = sum(p.to_local().numel() if hasattr(p, "to_local") else p.numel()
                for _, p in whole.optimizer_named_parameters)
    assert local == own, (local, own)
    fullest = sum(max(map(sum, zip(*shares))) for shares in per_rank.values())
    return weights, gradients, main, 8 * fullest


def measure(case):
    layout = case["layout"]
    with megatron.model_parallel(layout, 0):
        with (FakeTensorMode(allow_non_fake_inputs=True), without_gpu.CudaHere(),
              contextlib.redirect_stdout(io.StringIO())):
            gpt, config = megatron.build(MODELS[case["model"]], layout, 0)
            fsdp = adapter.FullyShardedDataParallel(
                config, ddp_config(layout), gpt, device=torch.device("cpu"))
            if case["step"]:
                run(fsdp)
            weights, gradients, main, moments = states(fsdp, layout)
        pools = utils.get_global_memory_buffer().buffer
        held = sum(t.numel() * t.element_size() for t in pools.values())
        pools.clear()
    ledger = {"after_init": {"weights": weights, "gradients": gradients, "main_weights": main},
              "steady_optimizer_step": {"optimizer_moments": moments}}
    result = {"name": name(case), "model": case["model"], "layout": layout,
              "job": {"sequence_length": 128}, "ledger": ledger}
    if case["step"]:
        ledger["steady_forward_backward"] = {"gathered_and_staged": held + LOG.most}
        result["lists"] = {key: golden.compress(LOG.handed_out[key])
                           for key in ("gathers", "reductions") if LOG.handed_out[key]}
    return result, held


def main():
    results = []
    for each in cases():
        if not golden.chosen(name(each)):
            continue
        try:
            result, held = measure(each)
            print(result["name"], held, LOG.most, file=sys.stderr, flush=True)
            results.append(result)
        except Exception as problem:
            print(f"{name(each)}: {type(problem).__name__}: {problem}"[:400], file=sys.stderr)
            if "--keep-going" not in sys.argv:
                raise SystemExit(1) from problem
    golden.dump("tests/golden/engines/megatron_fsdp.py", megatron_ddp.versions(), MODELS, results)


if __name__ == "__main__":
    main()
