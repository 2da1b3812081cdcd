"""Plans and runs of Shardwise for the parts of scripts/gpu_check.sh, and what they say of themselves."""
import array
import json
import os
import random
import struct
import time

import check


# The catalogue's cluster of a GPU, by words of nvidia-smi's name.
CLUSTERS = (("GH200", "alps-gh200"), ("GB200", "gb200-nvl72"), ("GB300", "gb300-nvl72"), ("B200", "dgx-b200"), ("B300", "dgx-b300"),
            ("H200", "dgx-h200"), ("H100 PCIe", "h100-pcie"), ("H100 NVL", "h100-nvl"), ("H100 80GB HBM3", "dgx-h100"),
            ("NVIDIA H20", "h20-ib"), ("A100-PCIE-40GB", "a100-pcie"), ("A100 80GB PCIe", "a100-pcie"),
            ("A100-SXM4-40GB", "aws-p4d"), ("A100-SXM4-80GB", "dgx-a100"), ("L40S", "l40s-pcie"), ("A10G", "aws-g5"),
            ("RTX 4090", "rtx-4090-x8"))
# Of other GPUs, by compute capability: the architecture, as clusters name it, and the catalogue's cluster of one like it.
LIKE = {"8.0": ("ampere", "dgx-a100"), "8.6": ("ampere", "aws-g5"), "8.7": ("ampere", "aws-g5"), "8.9": ("ada", "l40s-pcie"),
        "9.0": ("hopper", "dgx-h100"), "10.0": ("blackwell", "dgx-b200"), "10.3": ("blackwell", "dgx-b300"),
        "12.0": ("blackwell-rtx", "rtx-4090-x8"), "12.1": ("blackwell-rtx", "rtx-4090-x8")}
MIB = 1 << 20
MOST_APART = 0.03  # of this GPU's memory and the catalogue's


def gpu_bytes(part):
    """What programs can have of this GPU's memory; None where nvidia-smi does not say."""
    said = [part.machine.get("gpu", {}).get(field, "").split()[:1] for field in ("memory.total", "memory.reserved")]
    total, reserved = (int(words[0]) * MIB if words and words[0].isdigit() else 0 for words in said)
    return total - reserved or None


def catalogue(name):
    """A cluster of the catalogue with its GPU in it."""
    found = check.read_json(check.ROOT / f"configs/clusters/{name}.json")
    found["gpu"] = check.read_json(check.ROOT / f"configs/gpus/{found['gpu']}.json")
    return found


def ceilings(part):
    """The figures of the part ceilings; {} where they were not measured."""
    path = part.options.out / "ceilings.json"
    return check.read_json(path)["cases"].get("ceilings", {}) if path.exists() else {}


def cluster(part):
    """The catalogue's of this GPU, by name. Of other GPUs, or with other memory, a file: one of the catalogue's of the same
    compute capability, with this GPU's name and memory, and its measured rates for its peaks."""
    name = part.gpu_name()
    known = next((found for words, found in CLUSTERS if words in name), None)
    have = gpu_bytes(part)
    if known and (have is None or abs(catalogue(known)["gpu"]["hbm_bytes"] / have - 1) <= MOST_APART):
        return known
    path = part.options.out / "cluster.json"
    check.write_json(path, cluster_of(part, known, have))
    return path


def cluster_json(part):
    """The same, whole: its GPU in it."""
    of = cluster(part)
    return catalogue(of) if isinstance(of, str) else check.read_json(of)


def cluster_of(part, known, have):
    capability = part.machine.get("gpu", {}).get("compute_cap", "")
    if capability not in LIKE:
        raise check.Lacking(f"no kernels for {part.gpu_name()}, compute capability {capability or 'unknown'}")
    architecture, like = LIKE[capability]
    made = catalogue(known or like)
    gpu, name = made["gpu"], part.gpu_name()
    made["label"] = f"one host with {name}"
    gpu.update(name="gpu-here", label=name, architecture=architecture)
    if have:
        gpu["hbm_bytes"] = have
        gpu["sources"]["hbm_bytes"] = "nvidia-smi: memory.total less memory.reserved"
    seen = ceilings(part)
    if not known and seen.get("best_tflops_bf16"):
        rates = {"bf16": seen["best_tflops_bf16"], "fp16": seen["best_tflops_bf16"], "fp32": seen.get("best_tflops_fp32"),
                 "tf32": seen.get("best_tflops_tf32")}
        gpu["peak_tflops"].update({dtype: rate for dtype, rate in rates.items() if rate})
        gpu["memory_bandwidth_gb_per_s"] = seen["best_copy_gb_per_s"]
        for figure in ("peak_tflops", "memory_bandwidth_gb_per_s"):
            gpu["sources"][figure] = "the best that gpu_ceilings measured here"
    return made


def of_device(part, device, of=None):
    return (of or cluster(part)) if device == "cuda" else "laptop"


def plan(part, name, model, gpus=1, device="cuda", precision="bf16", sequence=128, batch=4, engine="shardwise", of=None, words=(), **locks):
    """Writes part.work/NAME.json: a plan for `gpus` of this GPU (as the cluster `of` has it), or of the CPU, with `locks`."""
    path = part.work / f"{name}.json"
    fixed = [word for key, value in locks.items() for word in ("--lock", f"{key}={value}")]
    kernels = ["--kernels", "planned"] if engine != "shardwise" else []
    done = part.run(part.program("shardwise"), "plan", "--model", model, "--cluster", of_device(part, device, of),
              "--gpus", gpus, "--engine", engine, *kernels, "--precision", precision, "--loss", "chunked",
              "--sequence-length", sequence, "--global-batch-size", batch, *fixed, *words, "-o", path, limit=120)
    if done.code == 1:
        raise check.DoesNotFit(check.tail(done.err or done.out, 3))
    if done.code != 0:
        raise check.Wrong(f"shardwise plan: {done.why()}")
    return path


class Run:
    """What a training wrote: `steps` as --metrics has them, `report` or None, `said` on its standard output."""

    def __init__(self, done, metrics, report):
        self.said, self.seconds = done.out, done.seconds
        lines = [json.loads(line) for line in metrics.read_text().splitlines()[1:]]
        self.steps = lines
        self.losses = [line["loss"] for line in lines]
        self.norms = [line["gradient_norm"] for line in lines]
        self.times = [line["step_time_s"] for line in lines]
        self.report = check.read_json(report) if report.exists() else None


def words_of(device):
    return ["--device", "cuda"] if device == "cuda" else []


def train(part, name, plan_path, device="cuda", steps=5, words=(), limit=300):
    """One process, as many ranks as the plan has. Raises Wrong where it does not end with 0."""
    metrics, report = part.work / f"{name}.jsonl", part.work / f"{name}.report.json"
    for path in (metrics, report):
        path.unlink(missing_ok=True)
    done = part.run(part.program("shardwise-run"), "train", plan_path, "--steps", steps, "--metrics", metrics, "--report", report,
                    *words_of(device), *words, limit=limit)
    if done.code != 0 and (" are free" in done.err or "out of memory" in done.err):
        raise check.DoesNotFit(check.tail(done.err, 3))
    if done.code != 0:
        raise check.Wrong(f"shardwise-run: {done.why()}")
    return Run(done, metrics, report)


def process(part, rank, ranks, plan_path, words, port, env=None):
    """Starts one rank, as torchrun would."""
    variables = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(ranks),
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return part.start(part.program("shardwise-run"), "train", plan_path, "--device", "cuda", "--share-gpu", *words,
                      env={**variables, **(env or {})})


def processes(part, ranks, plans, words=(), port=None, env=None):
    """Starts a process a rank; plans[r] is rank r's. Returns them, rank 0's first."""
    port = port or random.randrange(21000, 31000, 16)
    return [process(part, rank, ranks, plans[rank], words, port, env) for rank in range(ranks)]


def train_processes(part, name, plan_path, ranks, steps=5, words=(), limit=300):
    metrics, report = part.work / f"{name}.jsonl", part.work / f"{name}.report.json"
    for path in (metrics, report):
        path.unlink(missing_ok=True)
    if part.left() < 1:
        raise check.OutOfTime()
    running = processes(part, ranks, [plan_path] * ranks, ["--steps", steps, "--metrics", metrics, "--report", report, *words])
    ends = time.monotonic() + min(limit, part.left())
    ended = [each.wait(max(0.1, ends - time.monotonic())) for each in running]
    if any(done.timed_out for done in ended) and part.left() < 1:
        raise check.OutOfTime()
    for rank, done in enumerate(ended):
        if done.timed_out or done.code != 0:
            raise check.Wrong(f"rank {rank}: {done.why()}")
    return Run(ended[0], metrics, report)


def largest_difference(values, expected):
    """Of two curves: |a - b| / |b| at its largest. Infinite where a number is not finite or missing."""
    if len(values) != len(expected):
        return float("inf")
    worst = max((abs(a - b) / max(abs(b), 1e-30) for a, b in zip(values, expected)), default=float("inf"))
    return worst if worst == worst else float("inf")


def tensors(folder):
    """Of all safetensors files of a folder: name -> array of floats. F32 alone."""
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb") as file:
            size, = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
            for name, entry in header.items():
                if name == "__metadata__":
                    continue
                begin, end = entry["data_offsets"]
                if entry["dtype"] != "F32":
                    raise check.Wrong(f"{path.name}: {name} is {entry['dtype']}, not F32")
                file.seek(8 + size + begin)
                values = array.array("f")
                values.frombytes(file.read(end - begin))
                found.setdefault(name, array.array("f")).extend(values)
    return found


def relative_distance(a, b):
    """|a - b| / |b| over all tensors together, and the worst tensor's (of those with a thousandth of the whole norm)."""
    if a.keys() != b.keys():
        raise check.Wrong(f"tensors differ: {sorted(a.keys() ^ b.keys())[:3]}")
    squares = {name: (sum((x - y) ** 2 for x, y in zip(a[name], b[name])), sum(y * y for y in b[name])) for name in b}
    of_all = sum(norm for _, norm in squares.values())
    whole = (sum(far for far, _ in squares.values()) / max(of_all, 1e-60)) ** 0.5
    worst = max((far / norm) ** 0.5 for far, norm in squares.values() if norm > 1e-6 * of_all)
    return whole, worst


def latest_checkpoint(folder):
    steps = sorted(each for each in folder.glob("step-*") if each.is_dir() and not each.name.endswith(".partial"))
    if not steps:
        raise check.Wrong(f"no checkpoint in {os.path.basename(folder)}")
    return steps[-1]
