#!/usr/bin/env python3
"""DeepSpeed's own ZeRO 0 to 3: partitions, and every tensor of two whole steps.

A small Llama trains on real CPU tensors in a fake process group of any size, in which nothing
travels; a dispatch mode counts every storage from the first tensor to the last, but for those on
"meta", which have no bytes. Bytes:

    weights, main_weights, gradients, optimizer_moments   this rank's, as its optimizer holds them
    total                                                 the peak of a phase, all that is allocated

ZeRO-1 and 2 run as the first rank and as the last: parts of whole tensors differ by rank, and the
larger figure is taken. The accelerator says that it has streams, as CUDA's does.

Sizes are DeepSpeed's defaults divided by 125, as the model is smaller: each case says so under
"engine". ZeRO-0 takes no size but a constant of its engine.

    python3 -m venv venv && venv/bin/pip install torch==2.15.0 transformers==5.23.0
    DS_BUILD_OPS=0 venv/bin/pip install --no-build-isolation deepspeed==0.19.8
    venv/bin/python tests/golden/engines/deepspeed_zero.py > tests/golden/engines/deepspeed.json
"""

import contextlib
import gc
import json
import logging
import os
import sys
import time
import warnings
import weakref

os.environ.update(DS_ACCELERATOR="cpu", HF_HUB_OFFLINE="1", LOCAL_RANK="0", RANK="0",
                  MASTER_ADDR="127.0.0.1", MASTER_PORT="29777")
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

import golden
import shapes
import torch
import torch_llama as llama
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MODELS = {
    "tiny": shapes.llama(4, 210, 357, 21, 3, 5021, 10),
    "small": shapes.llama(6, 512, 1376, 8, 8, 16000),
    "small-grouped": shapes.llama(6, 512, 1376, 8, 2, 16000),
    "small-phi3": {**shapes.llama(6, 512, 1376, 8, 8, 16000), "model_type": "phi3",
                   "pad_token_id": 0, "sliding_window": None},
    "small-gemma": {**shapes.llama(6, 512, 2048, 4, 2, 16000), "model_type": "gemma", **shapes.TIED},
    "small-tied": shapes.llama(6, 512, 1376, 8, 8, 16000, **shapes.TIED),
    "thin": shapes.llama(4, 512, 700, 8, 4, 16000),  # fullest when the embedding is reduced
    "shallow": shapes.llama(2, 256, 2048, 4, 2, 16000),  # a table is gathered ahead beside all else
    "narrow": shapes.llama(6, 512, 1376, 8, 8, 2000),  # no tensor is larger than a bucket
    "deep": shapes.llama(60, 128, 344, 4, 4, 2000)}    # a group gathered ahead has several blocks
BUCKET = 4_000_000        # reduce_bucket_size
PREFETCH = 400_000        # stage3_prefetch_bucket_size
LIVE = 8_000_000          # stage3_max_live_parameters, stage3_max_reuse_distance
ZERO_0 = 500_000_000      # engine.py, MEMORY_OPT_ALLREDUCE_SIZE


class Storages(TorchDispatchMode):
    """Bytes of all storages, now and at most."""

    def __init__(self):
        super().__init__()
        self.known, self.now, self.most = {}, 0, 0

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.see(leaf.untyped_storage())
        return result

    def see(self, storage):
        key = storage._cdata
        if key in self.known or storage.device.type == "meta":
            return
        size = storage.nbytes()
        self.known[key] = weakref.finalize(storage, self.forget, key, size)
        self.now += size
        self.most = max(self.most, self.now)

    def forget(self, key, size):
        if self.known.pop(key, None) is not None:
            self.now -= size


class Stream:
    """A stream, and an event on it, of an accelerator that has one."""

    def __init__(self, *_, **__):
        pass

    def query(self):
        return True

    def nothing(self, *_):
        pass

    record = synchronize = wait_event = wait_stream = nothing


def has_streams():
    """The paths of CUDA's accelerator, whose work is done later than it is issued."""
    from deepspeed.accelerator import get_accelerator

    kind = type(get_accelerator())
    kind.is_synchronized_device = lambda _: False
    kind.Stream = kind.Event = property(lambda _: Stream)
    kind.stream = lambda *_: contextlib.nullcontext()
    kind.current_stream = kind.default_stream = lambda *_: Stream()
    torch.Tensor.record_stream = lambda *_: None


def case(model, ranks, stage, recompute="none", **more):
    return {"model": model, "ranks": ranks, "stage": stage, "recompute": recompute, "seq": 128,
            "sub_group": 1_000_000_000, "overlap": stage == 3, "step": True, **more}


def cases():
    for stage in (0, 1, 2, 3):
        for ranks in (8, 48):
            yield case("tiny", ranks, stage, step=False)
            yield case("small", ranks, stage)
    for stage in (1, 2, 3):
        yield case("small", 8, stage, "full")
        yield case("small-grouped", 8, stage)
        yield case("small", 64, stage, step=False)
        yield case("small", 512, stage, step=False)
    for stage in (1, 2):
        yield case("small", 8, stage, overlap=True)
    for elements in (500_000, 2_000_000):
        yield case("small", 8, 3, sub_group=elements)
    yield case("small", 2, 3, "full", sub_group=2_000_000)
    yield case("narrow", 8, 0)
    for stage in (1, 2, 3):
        yield case("narrow", 8, stage)
        yield case("narrow", 8, stage, "full")
        yield case("small", 8, stage, micro_batches=2)
    yield case("narrow", 8, 1, overlap=True)
    yield case("narrow", 2, 2)
    yield case("small-tied", 8, 2)
    yield case("small-tied", 8, 3)
    for stage in (1, 2, 3):
        yield case("small", 8, stage, step=False, offload=True)
    yield case("small", 16, 3, hpz=8)
    yield case("small-tied", 16, 3, hpz=8)
    yield case("narrow", 16, 3, hpz=8)
    yield case("narrow", 16, 3, hpz=8, micro_batches=2)
    yield case("narrow", 16, 3, "full", hpz=4)
    yield case("small-phi3", 8, 3, seq=1024)
    yield case("small-gemma", 8, 2, "full", seq=1024)
    yield case("deep", 8, 3)
    yield case("deep", 8, 3, "full")
    yield case("thin", 3, 3, "full")
    yield case("shallow", 8, 3)


def name(case):
    words = [f"{case['model']} dp {case['ranks']}", f"ZeRO-{case['stage']}"]
    words += [f"{case['seq']} tokens"] if case["seq"] != 128 else []
    words += ["full recompute"] if case["recompute"] == "full" else []
    words += ["overlap_comm"] if case["overlap"] and case["stage"] < 3 else []
    words += [f"sub-groups of {case['sub_group']}"] if case["sub_group"] < 1e9 else []
    words += [f"hpZ of {case['hpz']}"] if "hpz" in case else []
    words += ["optimizer offloaded"] if case.get("offload") else []
    words += [f"{case['micro_batches']} micro-batches"] if "micro_batches" in case else []
    words += [] if case["step"] else ["states"]
    return ", ".join(words)


def settings(case):
    zero = {"stage": case["stage"], "overlap_comm": case["overlap"], "reduce_bucket_size": BUCKET,
            "allgather_bucket_size": BUCKET, "sub_group_size": case["sub_group"]}
    if case["stage"] == 3:
        zero |= {"stage3_param_persistence_threshold": 0, "stage3_prefetch_bucket_size": PREFETCH,
                 "stage3_max_live_parameters": LIVE, "stage3_max_reuse_distance": LIVE}
    if case.get("offload"):
        zero["offload_optimizer"] = {"device": "cpu"}
    if "hpz" in case:
        zero["zero_hpz_partition_size"] = case["hpz"]
    return {"train_micro_batch_size_per_gpu": 1,
            "gradient_accumulation_steps": case.get("micro_batches", 1),
            "bf16": {"enabled": True}, "zero_allow_untested_optimizer": True,
            "zero_force_ds_cpu_optimizer": False, "zero_optimization": zero}


def size(tensor):
    return tensor.numel() * tensor.element_size()


def states(model, zero, stage):
    """What the engine's optimizer holds of this rank after it was made."""
    moments = sum(size(t) for held in zero.optimizer.state.values() for t in held.values()
                  if torch.is_tensor(t) and t.dim() > 0)
    if stage in (1, 2):
        return {"weights": sum(map(size, zero.bit16_groups_flat)),
                "main_weights": sum(map(size, zero.single_partition_of_fp32_groups)),
                "optimizer_moments": moments}
    if stage == 3:
        partition = getattr(zero, "grad_partitions_flat_buffer", None)
        return {"weights": sum(size(p.ds_tensor) for p in model.parameters()),
                "main_weights": sum(map(size, zero.fp32_partitioned_groups_flat)),
                "gradients": size(partition) if partition is not None else 0,
                "optimizer_moments": moments}
    return {"weights": sum(map(size, model.parameters())),
            "main_weights": sum(size(p) for group in zero.fp32_groups for p in group),
            "optimizer_moments": moments}


def never_overflows(zero):
    """Nothing travels, so values are those of memory that nobody wrote: steps are not left out."""
    from deepspeed.runtime.zero import stage3

    zero.check_grad_overflow = False
    zero.has_overflow = lambda *_, **__: False
    if hasattr(zero, "overflow_checker"):
        zero.overflow_checker.check = lambda *_, **__: False
    stage3.is_invalid_grad_norm = lambda *_: False


def train(engine, storages, case, ledger):
    """Two steps; the second one has the optimizer's moments from the start."""
    never_overflows(engine.optimizer)
    tokens = torch.randint(0, 100, (1, case["seq"]))
    for step in ("first", "steady"):
        gc.collect()
        storages.most = storages.now
        for micro_batch in range(case.get("micro_batches", 1)):
            if micro_batch > 0:
                engine.step()  # which only counts micro-batches
            logits = engine(input_ids=tokens, use_cache=False).logits
            loss = llama.loss_of(logits, tokens, "materialised")
            del logits
            engine.backward(loss)
            del loss
        ledger[f"{step}_forward_backward"] = {"total": storages.most}
        storages.most = storages.now
        engine.step()
        ledger[f"{step}_optimizer_step"] = {"total": storages.most}


def engine_sizes(case):
    bucket = BUCKET if case["stage"] > 0 else ZERO_0
    sizes = {"bucket_elements": bucket, "reduce_buffer_elements": bucket,
             "sub_group_elements": case["sub_group"]}
    if case["stage"] == 3:
        sizes |= {"gather_queue_elements": LIVE, "prefetch_elements": PREFETCH}
    return sizes


def measure(case, rank):
    import deepspeed

    os.environ.update(WORLD_SIZE=str(case["ranks"]), RANK=str(rank))
    has_streams()
    storages = Storages()
    with llama.Group(case["ranks"], rank), storages:
        model = llama.build(MODELS[case["model"]], case["recompute"] == "full")
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        engine, zero, _, _ = deepspeed.initialize(
            model=model, optimizer=optimizer, config=settings(case), dist_init_required=False)
        after = states(model, zero, case["stage"])
        ledger = {"after_init": after}
        if case.get("offload"):  # all but the weights is asked for on the host
            assert zero.cpu_offload if case["stage"] < 3 else zero.offload_optimizer
            ledger["after_init"] = {"weights": after["weights"], "main_weights": 0}
        if case["step"]:
            train(engine, storages, case, ledger)
        del model, optimizer, engine, zero
    gc.collect()
    layout = {"dp_shard": case["ranks"], "zero_stage": case["stage"], "fp32_gradients": False,
              "overlap_grad_reduce": case["overlap"]}
    layout |= {"recompute": "full"} if case["recompute"] == "full" else {}
    layout |= {"offload_optimizer": True} if case.get("offload") else {}
    layout |= {"reshard_after_forward": case["hpz"]} if "hpz" in case else {}
    micro_batches = {key: case[key] for key in ("micro_batches",) if key in case}
    return {"name": name(case), "model": case["model"], "layout": layout,
            "engine": engine_sizes(case), **micro_batches,
            "job": {"sequence_length": case["seq"], "loss": "materialised",
                    "rms_norm": "composite"}, "ledger": ledger}


def alone(case, rank=0):
    """The case in a process of its own, as DeepSpeed keeps its groups for good."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(2, 1)  # DeepSpeed prints
        code = 1
        try:
            os.write(write, json.dumps(measure(case, rank)).encode())
            code = 0
        except Exception as problem:
            print(f"{name(case)}: {type(problem).__name__}: {problem}"[:300], file=sys.stderr)
        os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else None


def fullest(case):
    """The larger figures of the first and the last rank where ranks differ."""
    result = alone(case)
    if result is None or case["stage"] not in (1, 2):
        return result
    last = alone(case, case["ranks"] - 1)
    if last is None:
        return None
    for phase, figures in result["ledger"].items():
        for key in figures:
            figures[key] = max(figures[key], last["ledger"][phase][key])
    return result


def main():
    import deepspeed

    begin, results = time.time(), []
    for each in cases():
        if not golden.chosen(name(each)):
            continue
        result = fullest(each)
        print(f"{name(each)} [{time.time() - begin:.0f} s]", file=sys.stderr, flush=True)
        if result is None and "--keep-going" not in sys.argv:
            raise SystemExit(1)
        results += [result] if result else []
    golden.dump("tests/golden/engines/deepspeed_zero.py",
                {"DeepSpeed": deepspeed.__version__, **llama.versions()}, MODELS, results)


if __name__ == "__main__":
    main()
