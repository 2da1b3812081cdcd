#!/usr/bin/env python3
"""The peak of the exported FSDP2 script on fake tensors, beside the ledger of its plan.

Five models are planned and exported. The script's own functions build, shard and train each model
for two steps under FakeTensorMode, in a fake process group of the plan's ranks, while
torch.distributed._tools.fsdp2_mem_tracker counts every storage. Attention keeps and makes what
PyTorch's CUDA FlashAttention does (tests/golden/engines/torch_llama.py). No GPU is needed.

That tracker puts hooks of its own on every module in the place of FSDP2's, which a unit of several
modules has once: the norm with the head would then be reduced one by one, and gathered again where
it stays. UnitsTracker leaves FSDP2's hooks where they are, and the script asserts that each unit is
reduced as often as it is without a tracker.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0
    venv/bin/python tests/golden/exported_memory.py --shardwise build/dev/bin/shardwise \\
        > tests/golden/exported_memory.json

The result is the golden file that tests/planner/export/golden_test.cc compares with. Exit code 1
where a peak is more than 1 % from the plan's ledger without the workspace of cuBLAS, which a fake
tensor on a CPU does not have.
"""

import argparse
import contextlib
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "golden" / "engines"))

import golden  # noqa: E402
import torch  # noqa: E402
import torch.distributed.fsdp._fully_shard._fsdp_param_group as param_group  # noqa: E402
import torch_llama as llama  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker, _FSDPRefType  # noqa: E402
from torch.distributed.device_mesh import init_device_mesh  # noqa: E402
from torch.distributed.fsdp import FSDPModule  # noqa: E402

warnings.filterwarnings("ignore")

# Model, GPUs, sequence length, sequences a step, loss, what is locked.
CASES = [
    ("llama-2-7b", 8, 2048, 8, "materialised", "recompute=none,reshard_after_forward=true"),
    ("llama-3.1-8b", 16, 4096, 32, "materialised", "dp_replicate=2,recompute=full,reshard_after_forward=true"),
    ("llama-3.2-1b", 8, 4096, 8, "materialised", "recompute=none,reshard_after_forward=true"),
    ("qwen3-0.6b", 16, 4096, 16, "materialised", "recompute=full,reshard_after_forward=false"),
    ("gpt2-xl", 8, 1024, 32, "materialised", "recompute=full,reduce_every_microbatch=false,reshard_after_forward=true"),
    ("llama-2-7b", 8, 2048, 32, "chunked", "recompute=none,reduce_every_microbatch=false,reshard_after_forward=true"),
    ("llama-3.1-8b", 16, 8192, 32, "chunked", "recompute=full,reshard_after_forward=true"),
    ("llama-3.1-8b", 16, 4096, 32, "chunked", "dp_replicate=2,recompute=full,reshard_after_forward=true"),
    ("llama-3.2-1b", 8, 4096, 8, "chunked", "recompute=none,reshard_after_forward=true"),
    ("llama-3.2-1b", 8, 4096, 16, "chunked", "dp_shard=8,recompute=full,reshard_after_forward=true"),
    ("llama-3.2-1b", 8, 4096, 16, "chunked", "dp_replicate=8,recompute=full,reshard_after_forward=true"),
    ("qwen3-0.6b", 16, 4096, 16, "chunked", "recompute=full,reshard_after_forward=false"),
    ("gpt2-xl", 8, 1024, 32, "chunked", "recompute=full,reduce_every_microbatch=false,reshard_after_forward=true"),
]
MOST_APART = 0.01


class UnitsTracker(FSDPMemTracker):
    """Counts storages, and leaves the hooks of FSDP2 where they are."""

    def _instrument_fsdp_module(self):
        for group in groups_of(self._root_mod):
            self._instrument_fsdp_sharded_params_grads(group)
        for buffer in self._root_mod.buffers():
            self._update_and_maybe_create_winfos(buffer, _FSDPRefType.BUFFER)


def groups_of(model):
    """FSDP2's units, each once."""
    groups = []
    for module in model.modules():
        if isinstance(module, FSDPModule):
            groups += [g for g in module._get_fsdp_state()._fsdp_param_groups if g not in groups]
    return groups


@contextlib.contextmanager
def counted_reductions():
    """How many parameters each reduction of a step has, in order."""
    reduce, counts = param_group.foreach_reduce, []

    def counting(parameters, *words, **more):
        counts.append(len(parameters))
        return reduce(parameters, *words, **more)

    param_group.foreach_reduce = counting
    try:
        yield counts
    finally:
        param_group.foreach_reduce = reduce


def run(command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def export(shardwise, case, folder):
    """The folder of the exported job, its plan, and the peak of its ledger."""
    model, gpus, length, batch, loss, locks = case
    words = [word for lock in [*locks.split(","), "micro_batch_size=1"] for word in ("--lock", lock)]
    plan, job = folder / f"{model}.json", folder / model
    run([shardwise, "plan", "--model", model, "--cluster", "dgx-h100", "--gpus", gpus, "--engine",
         "fsdp2", "--loss", loss, "--rms-norm", "composite", "--sequence-length", length,
         "--global-batch-size", batch, *words, "-o", plan])  # fmt: skip
    run([shardwise, "export", plan, "--to", "torch-fsdp2", "-o", job])
    run([shardwise, "simulate", plan, "-o", folder / "report.json"])
    report = json.loads((folder / "report.json").read_text())
    peak = max(phase["allocated_bytes"] - phase["categories"]["library_workspace_bytes"]
               for stage in report["memory"] for phase in stage["phases"])
    return job, json.loads(plan.read_text()), peak


def script_of(job):
    """The exported script as a module, with what it imports from its own folder."""
    sys.path.insert(0, str(job))
    sys.modules.pop("training_job", None)
    spec = importlib.util.spec_from_file_location("script", job / "train_torch_fsdp2.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    sys.path.remove(str(job))
    return script


def tracked(tracker, model, kind="peak"):
    """All bytes of a snapshot but AdamW's counters of steps, a number a tensor."""
    total = sum(each["Total"] for each in tracker.get_tracker_snapshot(kind).values())
    return total - 4 * sum(parameter.requires_grad for parameter in model.parameters())


def peak_of(job):
    """The peak of the script's second step."""
    script = script_of(job)
    settings = script.read_settings()
    settings["model"]["attention"] = "golden"
    shards, replicas = settings["sharding"]["shards"], settings["sharding"]["replicas"]
    with llama.Group(shards * replicas):
        mesh = init_device_mesh("cpu", (replicas, shards), mesh_dim_names=("replicate", "shard"))
        mesh = mesh if replicas > 1 else mesh["shard"]
        with FakeTensorMode(allow_non_fake_inputs=True):
            model = script.build_model(settings)
            script.shard(model, settings, mesh)
            script.initialise(model, torch.device("cpu"), 1)
            optimizer = script.job.make_optimizer(model.parameters(), settings, 1e-4)
            batch = settings["batch"]
            shape = (batch["micro_batch_size"], batch["sequence_length"] + 1)
            tracker = UnitsTracker(model, optimizer)

            def batches():
                while True:
                    tracker.reset_mod_stats()  # it counts one call of the model at a time
                    yield torch.zeros(shape, dtype=torch.int64)

            data = batches()
            with counted_reductions() as alone:
                script.train_step(model, optimizer, data, settings)
            for step in range(2):
                with tracker, counted_reductions() as counts:
                    script.train_step(model, optimizer, data, settings)
                assert counts == alone, f"the tracker changes what FSDP2 reduces: {counts}, {alone}"
            return tracked(tracker, model)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--shardwise", required=True, type=lambda p: pathlib.Path(p).resolve())
    parser.add_argument("--only", default="", help="models whose name has this")
    asked = parser.parse_args()
    results, failed = [], False
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if asked.only not in case[0]:
                continue
            job, plan, ledger = export(asked.shardwise, case, pathlib.Path(folder))
            peak = peak_of(job)
            apart = ledger / peak - 1
            failed = failed or abs(apart) > MOST_APART
            print(f"{case[0]}, {case[4]}: tracked {peak}, ledger {ledger}, {apart:+.2%}", file=sys.stderr)
            results.append({"model": case[0], "gpus": case[1], "engine": "fsdp2", "layout": plan["layout"],
                            "job": plan["job"], "peak": peak})  # fmt: skip
    golden.dump("tests/golden/exported_memory.py", llama.versions(), {}, results)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
