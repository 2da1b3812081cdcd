#!/usr/bin/env python3
"""Hands exported configurations to the frameworks' own parsers, and the examples of the checks.

Thirteen models (dense, grouped queries, tied, experts, latent attention) are planned in several
layouts and exported. Each parser must accept its file and say the plan's data-parallel ranks,
micro-batches and strategy. The failing example of each rule must be refused where the rule says so,
and accepted where it says that the framework is silent; the passing one must be accepted. No GPU is
needed. The result is the golden file that tests/planner/export/golden_test.cc compares with.

    python3.12 -m venv venv    # 3.11 works with typing_extensions
    venv/bin/pip install torch==2.15.0 accelerate==1.15.0 deepspeed==0.19.8 torchtitan==0.3.0
    git clone the repository NVIDIA/Megatron-LM, commit d98e8a64
    venv/bin/python tests/golden/frameworks.py --shardwise build/dev/bin/shardwise \\
        --megatron Megatron-LM > tests/golden/frameworks.json
"""

import argparse
import contextlib
import importlib.metadata
import io
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import types
import typing
import warnings

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "tests" / "invalid" / "framework"

DENSE, GROUPED, TIED = "gpt3-175b", "llama-3.1-70b", "qwen3-0.6b"
EXPERTS, LATENT = "mixtral-8x7b", "deepseek-v2-lite"
# Framework, model, GPUs, engine, what is locked.
CASES = [
    ("megatron-lm", GROUPED, 64, "megatron_ddp", "zero_stage=1,tp=4,pp=4,vpp=2,cp=1,micro_batch_size=1"),
    ("megatron-lm", GROUPED, 64, "megatron_fsdp", "zero_stage=3,tp=2,pp=1,cp=2,dp_replicate=2,outer_shards_optimizer=true,recompute=full"),
    ("megatron-lm", GROUPED, 64, "fsdp2_in_megatron", "zero_stage=3,tp=2,pp=1,cp=1,recompute=full"),
    ("megatron-lm", DENSE, 256, "megatron_ddp", "zero_stage=1,tp=8,pp=8,cp=1,recompute=full"),
    ("megatron-lm", TIED, 8, "megatron_ddp", "zero_stage=0,tp=1,pp=1,cp=1"),
    ("megatron-lm", TIED, 8, "megatron_fsdp", "zero_stage=2,tp=1,pp=1,cp=1"),
    ("megatron-lm", EXPERTS, 64, "megatron_ddp", "zero_stage=1,tp=2,pp=2,ep=8,etp=1,cp=1"),
    ("megatron-lm", LATENT, 64, "megatron_ddp", "zero_stage=1,tp=1,pp=1,ep=8,etp=1,cp=1,recompute=full"),
    ("megatron-lm", "qwen2.5-32b", 128, "megatron_ddp", "zero_stage=1,tp=8,pp=4,vpp=4,cp=1,micro_batch_size=1"),
    ("megatron-lm", "llama-3.1-405b", 1024, "megatron_ddp", "zero_stage=1,tp=8,pp=16,cp=1,first_stage_layers=6"),
    ("megatron-lm", "mixtral-8x22b", 128, "megatron_ddp", "zero_stage=1,tp=2,pp=8,vpp=7,ep=8,etp=1,cp=1"),
    ("megatron-lm", "deepseek-v3", 2048, "megatron_ddp", "zero_stage=1,tp=2,pp=16,ep=64,etp=1,cp=1,recompute=full"),
    ("megatron-lm", "llama-3.1-8b", 64, "megatron_fsdp", "zero_stage=3,tp=1,pp=1,cp=1,double_buffer=true"),
    ("torchtitan", GROUPED, 64, "fsdp2", "zero_stage=3,tp=4,pp=1,cp=1,recompute=full"),
    ("torchtitan", "llama-3.1-8b", 64, "fsdp2", "zero_stage=3,tp=2,pp=4,vpp=2,cp=1,dp_replicate=2,recompute=full,reshard_after_forward=false,reduce_every_microbatch=false"),
    ("torchtitan", "llama-3.1-8b", 64, "fsdp2", "zero_stage=3,tp=1,pp=1,cp=1,dp_replicate=8,recompute=none"),
    ("torchtitan", "llama-3.1-8b", 16, "fsdp2", "zero_stage=3,pp=2,schedule=gpipe"),
    ("torchtitan", TIED, 8, "fsdp2", "zero_stage=3,tp=1,pp=1,cp=1"),
    ("torchtitan", "qwen3-30b-a3b", 64, "fsdp2", "zero_stage=3,tp=1,pp=1,cp=1,ep=8,recompute=full"),
    ("torchtitan", "deepseek-v3", 2048, "fsdp2", "zero_stage=3,tp=1,pp=1,cp=1,ep=64,recompute=full"),
    ("accelerate", GROUPED, 64, "fsdp2", "zero_stage=3,tp=1,pp=1,cp=1,recompute=full"),
    ("accelerate", "llama-3.1-8b", 64, "fsdp2", "zero_stage=3,tp=1,pp=1,cp=1,dp_replicate=8"),
    ("accelerate", "llama-3.1-8b", 64, "fsdp2", "zero_stage=3,tp=2,pp=1,cp=1,dp_replicate=1"),
    ("accelerate", TIED, 8, "fsdp2", "zero_stage=3,tp=1,pp=1,cp=1,reshard_after_forward=false"),
    ("accelerate", TIED, 8, "fsdp1", "zero_stage=3"),
    ("accelerate", "qwen1.5-moe-a2.7b", 64, "fsdp2", "zero_stage=3,tp=1,pp=1,cp=1,ep=1,recompute=full"),
    ("deepspeed", GROUPED, 64, "deepspeed", "zero_stage=3,tp=1,pp=1,dp_replicate=1,recompute=full"),
    ("deepspeed", DENSE, 256, "deepspeed", "zero_stage=3,tp=1,pp=1,dp_replicate=1,recompute=full"),
    ("deepspeed", "qwen2.5-32b", 64, "deepspeed", "zero_stage=3,recompute=full,offload_optimizer=true"),
    ("deepspeed", "opt-13b", 16, "deepspeed", "zero_stage=2"),
    ("deepspeed", TIED, 8, "deepspeed", "zero_stage=0,tp=1,pp=1,dp_replicate=1"),
    ("deepspeed", TIED, 8, "deepspeed", "zero_stage=1,tp=1,pp=1,dp_replicate=1"),
    ("deepspeed", LATENT, 64, "deepspeed", "zero_stage=2,tp=1,pp=1,ep=1,dp_replicate=1,offload_optimizer=true,recompute=full"),
]


@contextlib.contextmanager
def environment(values):
    before = dict(os.environ)
    for name in ("CUDA_DEVICE_MAX_CONNECTIONS", "WORLD_SIZE"):
        os.environ.pop(name, None)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Megatron:
    """parse_args, validate_args and core_transformer_config_from_args of Megatron-LM."""

    # What a machine without Transformer Engine and without data has.
    BASE = (
        "--transformer-impl local --no-rope-fusion --no-masked-softmax-fusion --no-persist-layer-norm "
        "--no-gradient-accumulation-fusion --mock-data --tokenizer-type NullTokenizer "
        "--lr 1e-4 --train-iters 10"
    ).split()

    def __init__(self, folder):
        if not hasattr(typing, "override"):
            import typing_extensions

            typing.override = typing_extensions.override
        sys.path.insert(0, str(folder))
        os.environ.setdefault("RANK", "0")
        import megatron.training.arguments as arguments
        import torch

        arguments.get_device_arch_version = lambda: 9  # Hopper
        torch.cuda.get_device_capability = lambda *device: (9, 0)
        self.arguments = arguments

    def parse(self, words, ranks, variables, base=None):
        with environment({"WORLD_SIZE": str(ranks), "RANK": "0", **variables}):
            sys.argv = ["pretrain_gpt.py", *(self.BASE if base is None else base), *words]
            args = self.arguments.validate_args(self.arguments.parse_args())
            self.arguments.core_transformer_config_from_args(args)
        strategy = "ddp"
        if args.use_megatron_fsdp:
            strategy = args.data_parallel_sharding_strategy
        elif args.use_torch_fsdp2:
            strategy = "fsdp2"
        elif args.use_distributed_optimizer:
            strategy = "optim"
        passes = args.global_batch_size // args.micro_batch_size // args.data_parallel_size
        return {"dp": args.data_parallel_size, "micro_batches": passes, "strategy": strategy}

    def of_export(self, folder, ranks):
        words = shlex.split((folder / "arguments.txt").read_text())
        if "--moe-grouped-gemm" in words:  # asks the GPU for its capability
            words.remove("--moe-grouped-gemm")
        if "--attention-backend" in words:  # Transformer Engine's, which is not here
            words[words.index("--attention-backend") + 1] = "auto"
        lines = (folder / "environment.sh").read_text().split("\n")
        exported = (shlex.split(l)[1] for l in lines if l.startswith("export "))
        variables = dict(word.split("=", 1) for word in exported)
        return self.parse(words, ranks, variables)

    def of_example(self, path):
        words = shlex.split(path.read_text().replace("\\\n", " "))
        variables = dict(word.split("=", 1) for word in words[: words.index("torchrun")])
        words = words[words.index("pretrain_gpt.py") + 1 :]
        base = self.BASE.copy()
        if "torch_fsdp2_fusion" in path.name:
            base.remove("--no-gradient-accumulation-fusion")
        if any(word.endswith("data-path") or word == "--data-args-path" for word in words):
            base.remove("--mock-data")
        if "--train-samples" in words:
            at = base.index("--train-iters")
            del base[at : at + 2]
        return self.parse(words, 16, variables, base)


class Titan:
    """ConfigManager of torchtitan, and the degrees as its trainer checks them."""

    def __init__(self):
        from torchtitan.config.manager import ConfigManager
        from torchtitan.distributed.parallel_dims import ParallelDims

        self.manager, self.dims = ConfigManager, ParallelDims

    def parse(self, words, ranks):
        config = self.manager().parse_args(words)
        dims = self.dims.from_config(config.parallelism, ranks)
        dp = dims.dp_replicate * dims.dp_shard
        local, whole = config.training.local_batch_size, config.training.global_batch_size
        whole = local * dp if whole < 0 else whole
        assert whole % (local * dp) == 0, "global batch size"
        passes = whole // (local * dp)
        if dims.pp > 1:
            passes *= local // config.parallelism.pipeline_parallel_microbatch_size
        strategy = "hsdp" if dims.dp_replicate > 1 else "fsdp"
        return {"dp": dp, "micro_batches": passes, "strategy": strategy}

    def of_export(self, folder, ranks):
        return self.parse(shlex.split((folder / "arguments.txt").read_text()), ranks)

    def of_example(self, path):
        words = shlex.split(path.read_text().replace("\\\n", " "))
        return self.parse(words[words.index("torchtitan.train") + 1 :], 16)


class DeepSpeed:
    """DeepSpeedConfig on the CPU."""

    def __init__(self):
        os.environ["DS_ACCELERATOR"] = "cpu"
        from deepspeed.runtime import config

        config.dist.get_rank = lambda: 0  # without a job it would take one rank
        self.config = config

    def parse(self, path, ranks):
        class Mesh:  # stands for the device mesh, whose data-parallel ranks the config asks for
            def get_data_parallel_world_size(self):
                return ranks

        config = self.config.DeepSpeedConfig(str(path), mpu=Mesh())
        return {
            "dp": config.world_size,
            "micro_batches": config.gradient_accumulation_steps,
            "strategy": f"zero {int(config.zero_config.stage)}",
        }

    def of_export(self, folder, ranks):
        return self.parse(folder / "ds_config.json", ranks)

    def of_example(self, path):
        return self.parse(path, 16)


class Accelerate:
    """`accelerate launch`, what it sets for its ranks, and what Accelerator makes of that."""

    def __init__(self):
        import accelerate.commands.launch
        import accelerate.utils.dataclasses
        import accelerate.utils.launch
        import torch

        # What a machine with GPUs and Transformer Engine has, and no other job on it.
        accelerate.utils.launch.is_fp8_available = lambda: True
        accelerate.utils.launch.is_port_in_use = lambda port: False
        accelerate.utils.dataclasses.is_cuda_available = lambda: True
        torch.cuda.current_device = lambda: 0
        self.commands, self.launch = accelerate.commands.launch, accelerate.utils.launch
        self.plugin = accelerate.utils.FullyShardedDataParallelPlugin
        self.parallelism = accelerate.utils.ParallelismConfig

    def ranks_of(self, args):
        """Of all nodes, as torchrun takes them."""
        from torch.distributed import run as torchrun

        here = torchrun.determine_local_world_size(args.nproc_per_node)
        nodes, _ = torchrun.parse_min_max_nnodes(getattr(args, "nnodes", "1"))
        assert here > 0 and nodes > 0, "no ranks"
        return here * nodes

    def parse(self, path):
        words = ["--config_file", str(path), "train.py"]
        args = self.commands.launch_command_parser().parse_args(words)
        args, config, _ = self.commands._validate_launch_command(args)
        made = self.launch.prepare_multi_gpu_env(args)
        ranks = self.ranks_of(args)
        parallel, shown = None, "ddp"
        with environment(made):
            if "ACCELERATE_USE_FSDP" in made:
                plugin = self.plugin()
                if made["ACCELERATE_MIXED_PRECISION"] != "no":
                    plugin.set_mixed_precision(made["ACCELERATE_MIXED_PRECISION"])
                shown = plugin.reshard_after_forward
                if plugin.fsdp_version == 1:
                    shown = (plugin.sharding_strategy or shown).name
                shown = f"fsdp{plugin.fsdp_version} {shown}".lower()
            if "ACCELERATE_USE_PARALLELISM_CONFIG" in made:
                parallel = self.parallelism()
        inner = 1
        if parallel is not None:
            inner = parallel.non_data_parallel_size
            parallel._validate_accelerator(
                types.SimpleNamespace(
                    num_processes=ranks,
                    multi_device=shown == "ddp",
                    is_fsdp2=shown.startswith("fsdp2"),
                    is_main_process=True,
                    distributed_type=config.distributed_type,
                )
            )
        return {"dp": ranks // inner, "strategy": shown}

    def of_export(self, folder, ranks):
        return self.parse(folder / "accelerate.yaml")

    def of_example(self, path):
        return self.parse(path)


def run(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def said_by(parse, *of):
    """What the parser says, or the words of its refusal."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            return parse(*of)
    except BaseException as refusal:  # parsers exit as well as raise
        last = (out.getvalue().strip().split("\n") or [""])[-1]
        return f"{type(refusal).__name__}: {str(refusal) or last}"


def exported(shardwise, parsers, folder):
    rows = []
    for index, (framework, model, gpus, engine, locks) in enumerate(CASES):
        plan, job = folder / f"{index}.json", folder / str(index)
        locked = [word for lock in locks.split(",") for word in ("--lock", lock)]
        run([shardwise, "plan", "--model", model, "--cluster", "dgx-h100", "--gpus", str(gpus),
             "--engine", engine, "--global-batch-size", str(8 * gpus),
             *locked, "-o", plan])  # fmt: skip
        if not plan.exists():
            raise SystemExit(f"{model} {locks}: no layout fits")
        run([shardwise, "export", plan, "--to", framework, "-o", job])
        text = json.loads(plan.read_text())
        said = said_by(parsers[framework].of_export, job, gpus)
        if isinstance(said, str):
            raise SystemExit(f"{framework} refuses {model} {locks}: {said}")
        file = next(job / f for f in ("arguments.txt", "ds_config.json", "accelerate.yaml")
                    if (job / f).exists())  # fmt: skip
        rows.append({"framework": framework, "model": model, "gpus": gpus, "engine": engine,
                     "layout": text["layout"], "job": text["job"],
                     "configuration": file.read_text(), "said": said})  # fmt: skip
    return rows


def examined(parsers):
    rows = []
    for framework, parser in parsers.items():
        for path in sorted((EXAMPLES / framework).iterdir()):
            name, example = path.name.split(".")[:2]
            if path.suffix == ".txt":
                continue
            said = said_by(parser.of_example, path)
            refused = None
            if isinstance(said, str):
                refused = said.replace(f"{ROOT}/", "").split("\n")[0][:160]
            rows.append({"framework": framework, "rule": name, "example": example,
                         "refused": refused})  # fmt: skip
    return rows


def versions(megatron):
    """Of the frameworks that were asked, as configs/frameworks must have them."""
    installed = {name: importlib.metadata.version(name)
                 for name in ("torchtitan", "accelerate", "deepspeed")}  # fmt: skip
    text = (megatron / "megatron" / "core" / "package_info.py").read_text()
    numbers = [re.search(rf"^{part} = (\d+)", text, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    return {"megatron-lm": ".".join(numbers), **installed}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shardwise", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--megatron", required=True, type=lambda p: pathlib.Path(p).resolve())
    asked = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":  # Megatron-LM prints sets in its refusals
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the frameworks print is no part of the answer
    parsers = {"megatron-lm": Megatron(asked.megatron), "torchtitan": Titan(),
               "accelerate": Accelerate(), "deepspeed": DeepSpeed()}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        rows = exported(asked.shardwise, parsers, pathlib.Path(folder))
    result = {"versions": versions(asked.megatron), "exports": rows, "examples": examined(parsers)}
    json.dump(result, answer, indent=1, ensure_ascii=False)
    answer.write("\n")
    answer.close()


if __name__ == "__main__":
    main()
