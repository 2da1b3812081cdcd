#!/usr/bin/env python3
"""Runs what layout rules refuse in the own code of the engines, and says which line refuses it.

Each case is a rule of planner/cost/rules_of_*.cc that configs/engines/refusals.json has a line for.
The engine's parser or class is given a job that breaks the rule, and the same job without the
breach where that is one flag. The line is that of the innermost frame of its refusal in the
engine's code. tests/planner/legality/refusals_test.cc compares.

    pip line and Megatron-LM as in tests/golden/frameworks.py
    MEGATRON=Megatron-LM venv/bin/python tests/golden/engine_refusals.py \\
        > tests/golden/engine_refusals.json
"""

import contextlib
import importlib.metadata
import io
import json
import os
import pathlib
import sys
import traceback
import types

GOLDEN = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(GOLDEN), str(GOLDEN / "engines")]
MEGATRON = pathlib.Path(os.environ["MEGATRON"]).resolve()

from without_gpu import CudaHere, process_group  # noqa: E402  stands in for CUDA first

import frameworks  # noqa: E402
import torch  # noqa: E402

PARSER = frameworks.Megatron(MEGATRON)
DDP, FSDP, FSDP2 = "megatron_ddp", "megatron_fsdp", "fsdp2_in_megatron"
ALL = (DDP, FSDP, FSDP2)
JOB = (
    "--num-layers 4 --hidden-size 192 --num-attention-heads 6 --seq-length 1024 "
    "--max-position-embeddings 1024 --micro-batch-size 1 --global-batch-size 16"
)
OF_ENGINE = {
    DDP: "--use-distributed-optimizer",
    FSDP: "--use-megatron-fsdp --use-distributed-optimizer --ckpt-format fsdp_dtensor",
    FSDP2: "--use-torch-fsdp2 --untie-embeddings-and-output-weights --ckpt-format torch_dist",
}
EXPERTS = "--num-experts 8 --disable-bias-linear"
OVERLAP = f"{EXPERTS} --moe-token-dispatcher-type alltoall --overlap-moe-expert-parallel-comm --expert-model-parallel-size"
ONE_QUEUE = {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}


def arguments(engine, words, without="", fused=False, precision="--bf16"):
    """The job of `words` by Megatron-LM's arguments; `without` are words that it leaves out."""
    base = [w for w in PARSER.BASE if not (fused and w == "--no-gradient-accumulation-fusion")]
    own = [w for w in OF_ENGINE[engine].split() if w not in without.split()]
    many = any(degree in words for degree in ("tensor-model", "context-parallel"))
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            PARSER.parse([*JOB.split(), precision, *own, *words.split()], 16,
                         ONE_QUEUE if many and engine == DDP else {}, base)
    except SystemExit:  # of argparse
        raise SystemExit(said.getvalue().strip().split("\n")[-1]) from None


def moe_forward():
    from megatron.core.transformer.moe.moe_layer import MoELayer

    MoELayer.forward(types.SimpleNamespace(
        training=True, attn_tp_group=types.SimpleNamespace(size=lambda: 2),
        config=types.SimpleNamespace(sequence_parallel=False)), None)


def expert_groups():
    from megatron.core import parallel_state

    with process_group(0, 16):
        parallel_state.initialize_model_parallel(expert_model_parallel_size=3)


def batch():
    from megatron.core.num_microbatches_calculator import ConstantNumMicroBatchesCalculator

    ConstantNumMicroBatchesCalculator(17, 1, 16, False, 0)


def ddp(**settings):
    import megatron_models as megatron
    import shapes
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig

    layout = {"dp_shard": 8, "dp_replicate": 2, "zero_stage": 1}
    with megatron.model_parallel(layout, 0):
        with CudaHere(), contextlib.redirect_stdout(io.StringIO()):
            gpt, config = megatron.build(shapes.cut(shapes.GPT2, 1), layout, 0, grouped=True)
            DistributedDataParallel(config, DistributedDataParallelConfig(
                num_distributed_optimizer_instances=2, **settings), gpt)


def optimizer(**settings):
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer

    config = OptimizerConfig(lr=1e-4, bf16=True, use_precision_aware_optimizer=True, **settings)
    chunk = types.SimpleNamespace(ddp_config=types.SimpleNamespace(megatron_fsdp_version=1))
    get_megatron_optimizer(config, [chunk])


def outer():
    from megatron.core.distributed.fsdp.src.megatron_fsdp.fully_shard import fully_shard_model

    fully_shard_model(torch.nn.Linear(8, 8), types.SimpleNamespace(),
                      zero_dp_strategy="optim_grads", outer_dp_sharding_strategy="optim")


def zero_config(settings, ranks=16):
    os.environ["DS_ACCELERATOR"] = "cpu"
    from deepspeed.runtime import config

    config.dist.get_rank = lambda: 0
    mesh = types.SimpleNamespace(get_data_parallel_world_size=lambda: ranks)
    config.DeepSpeedConfig({"train_micro_batch_size_per_gpu": 1, **settings}, mpu=mesh)


def pipeline():
    from deepspeed.runtime.engine import DeepSpeedEngine
    from deepspeed.runtime.pipe.engine import PipelineEngine
    from deepspeed.runtime.pipe.module import PipelineModule

    def start(self, *_, **__):
        self.__dict__["module"] = object.__new__(PipelineModule)

    DeepSpeedEngine.__init__ = start
    PipelineEngine.zero_optimization_stage = lambda self: 2
    PipelineEngine()


def experts():
    from deepspeed.moe.layer import MoE

    MoE(8, torch.nn.Linear(8, 8), num_experts=8, ep_size=3)


def expert_split():
    from deepspeed.module_inject.auto_ep_layer import AutoEPMoELayer
    from deepspeed.runtime.engine import DeepSpeedEngine

    layer = object.__new__(AutoEPMoELayer)
    DeepSpeedEngine._validate_zero3_moe_compatibility(types.SimpleNamespace(
        has_moe_layers=True, sequence_parallel_size=1, zero_quantized_gradients=lambda: False,
        module=types.SimpleNamespace(named_modules=lambda: [("experts", layer)]),
        _config=types.SimpleNamespace(
            zero_config=types.SimpleNamespace(zero_hpz_partition_size=1),
            expert_parallel_config=types.SimpleNamespace(expert_tensor_parallel_size=2))))


def hpz_groups():
    from deepspeed.utils import groups

    groups.dist = types.SimpleNamespace(is_initialized=lambda: True, get_world_size=lambda: 16,
                                        get_rank=lambda: 0)
    groups._create_zero_param_parallel_group(3)


def cases():
    """Rule, engine, what breaks it."""
    def by_words(rule, engines, words, **how):
        for engine in engines:
            yield rule, engine, lambda engine=engine: arguments(engine, words, **how)

    yield from by_words("engine_pp", [FSDP2], "--pipeline-model-parallel-size 2")
    yield from by_words("engine_ep", [FSDP2], f"{EXPERTS} --expert-model-parallel-size 2")
    yield from by_words("engine_tied_head", [FSDP2], "",
                        without="--untie-embeddings-and-output-weights")
    yield from by_words("engine_fp16", [FSDP2], "", precision="--fp16")
    yield from by_words("fused_accumulation_of_fsdp2", [FSDP2], "", fused=True)
    yield from by_words("transformer_engine_loss", ALL,
                        "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te")
    yield from by_words("heads_by_tp", ALL, "--tensor-model-parallel-size 4")
    yield from by_words("kv_heads_by_tp", ALL, "--tensor-model-parallel-size 2 "
                        "--group-query-attention --num-query-groups 3")
    yield from by_words("sequence_by_cp", ALL, "--context-parallel-size 2 --seq-length 1022")
    yield from by_words("dense_has_no_experts", (DDP, FSDP), "--expert-model-parallel-size 2")
    yield from by_words("experts_by_ep", (DDP, FSDP), f"{EXPERTS} --expert-model-parallel-size 3")
    yield from by_words("vpp_needs_pp", (DDP, FSDP), "--num-virtual-stages-per-pipeline-rank 2")
    yield from by_words("param_gather_needs_overlap", [DDP], "--overlap-param-gather")
    yield from by_words("param_gather_of_replicas", [DDP],
                        "--overlap-grad-reduce --overlap-param-gather",
                        without="--use-distributed-optimizer")
    yield from by_words("positions", ALL, "--seq-length 2048")
    yield from by_words("engine_bf16_main", [DDP],
                        "--use-precision-aware-optimizer --main-params-dtype bf16")
    yield from by_words("offload_of_fp8_weights", (DDP, FSDP), "--optimizer-cpu-offload "
                        "--use-precision-aware-optimizer --fp8-format hybrid --fp8-param-gather "
                        "--fp8-recipe tensorwise")
    yield from by_words("fp8_gather_needs_shards", [DDP], "--fp8-format hybrid --fp8-param-gather",
                        without="--use-distributed-optimizer")
    yield from by_words("deterministic_loss", ALL,
                        "--deterministic-mode --cross-entropy-loss-fusion")
    yield from by_words("pipelined_needs_sequence", ALL,
                        "--tp-comm-overlap --tensor-model-parallel-size 2")
    yield from by_words("expert_overlap_needs_ep", (DDP, FSDP), f"{OVERLAP} 1")
    yield from by_words("expert_overlap_recompute", (DDP, FSDP), f"{OVERLAP} 2 --recompute-method "
                        "uniform --recompute-granularity full --recompute-num-layers 1")
    yield from by_words("expert_overlap_interleaves", (DDP, FSDP),
                        f"{OVERLAP} 2 --pipeline-model-parallel-size 2")
    for engine in (DDP, FSDP):
        yield "experts_need_sequence", engine, moe_forward
        yield "expert_ranks", engine, expert_groups
        yield "narrow_states_of_adamw", engine, lambda: optimizer(optimizer="sgd")
    for engine in ALL:
        yield "batch_divides", engine, batch
    yield "replicas_of_shards", DDP, lambda: ddp(use_distributed_optimizer=False)
    yield "fp32_accumulation_replicas", DDP, lambda: ddp(
        use_distributed_optimizer=True, reduce_scatter_with_fp32_accumulation=True)
    for rule, engine in (("engine_narrow_states", FSDP2), ("narrow_states_of_shards", DDP),
                         ("offload_of_shards", DDP)):
        # With the optimizer on the host nobody looks for Transformer Engine's.
        yield rule, engine, lambda: optimizer(optimizer="adam", optimizer_cpu_offload=True)
    yield "outer_is_zero3", FSDP, outer
    yield "pipeline_zero_stage", "deepspeed", pipeline
    yield "engine_hybrid", "deepspeed", lambda: zero_config(
        {"zero_optimization": {"stage": 3, "mics_shard_size": 8}})
    yield "batch_divides", "deepspeed", lambda: zero_config({"train_batch_size": 17})
    yield "experts_by_ep", "deepspeed", experts
    yield "engine_etp_shards", "deepspeed", expert_split
    yield "reshard_groups_divide", "deepspeed", hpz_groups


def refused(run):
    """The line in the engine's code that refuses the job, and what it says."""
    try:
        run()
    except SystemExit as stop:  # of argparse, at the flag that has the choices
        flag = next(w for w in sys.argv if w.startswith("--main-params"))
        path = "megatron/training/arguments.py"
        lines = (MEGATRON / path).read_text().split("\n")
        at = next(i for i, line in enumerate(lines, 1) if f"'{flag}'" in line)
        return f"{path}:{at}", str(stop)[:120]
    except Exception as refusal:
        site = pathlib.Path(torch.__file__).resolve().parents[1]
        for frame in reversed(traceback.extract_tb(refusal.__traceback__)):
            file = pathlib.Path(frame.filename).resolve()
            for folder, name in ((MEGATRON, "megatron"), (site, "deepspeed")):
                if file.is_relative_to(folder / name):
                    said = f"{type(refusal).__name__}: {refusal}".split("\n")[0]
                    return f"{file.relative_to(folder)}:{frame.lineno}", said[:120]
        raise
    return None, "accepted"


def main():
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the engines print is no part of the answer
    rows = []
    for rule, engine, run in cases():
        at, said = refused(run)
        rows.append({"rule": rule, "engine": engine, "at": at, "said": said})
    versions = {name: importlib.metadata.version(name) for name in ("deepspeed",)}
    lines = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows)
    answer.write(f'{{\n  "versions": {json.dumps(versions)},\n  "refusals": [\n{lines}\n  ]\n}}\n')
    answer.close()


if __name__ == "__main__":
    main()
